"""What --quick works on: a few stories of the newsroom, a dataset of them, and a tiny model.

It lies in a temporary folder that goes when the program ends.
"""

import atexit
from collections import Counter
from functools import cache
from itertools import count, cycle, islice
from pathlib import Path
from tempfile import TemporaryDirectory

from ledeline.config import (
    CorpusConfig,
    DatasetConfig,
    PrepareConfig,
    SplitConfig,
    SubwordConfig,
)
from ledeline.config.toml import to_toml
from ledeline.corpus.table_writer import write_table
from ledeline.data.prepare import prepare
from ledeline.model.addons.sgate import SelectiveGateConfig
from ledeline.model.addons.spm import SourcePredictionConfig
from ledeline.model.system_config import SystemConfig
from ledeline.model.systems.encdec import EncDecConfig
from ledeline.synth.newsroom import Story, write_story
from ledeline.text.profiles import PAPER

MODEL = EncDecConfig(embedding_size=6, hidden_size=8)
MERGES = 600
COLUMNS = ("lede", "headline", "source")
SOURCES = ("reuters.com", "example.com", "apnews.com")  # of the stories, in turn


@cache
def folder() -> Path:
    """The temporary folder."""
    place = TemporaryDirectory(prefix="ledeline-quick-")
    atexit.register(place.cleanup)
    return Path(place.name)


def stories(number: int, seed: int) -> list[Story]:
    """Short ones."""
    everything = (write_story(seed, place)[1] for place in count())
    return list(islice((one for one in everything if len(one.lede.split()) < 20), number))


def table(name: str = "pairs.jsonl", number: int = 16) -> Path:
    """A table of stories, with the sources they come from."""
    path = folder() / name
    both = zip(stories(number, 1), cycle(SOURCES), strict=False)
    rows = ((story.lede, story.headline, source) for story, source in both)
    write_table(path, (dict(zip(COLUMNS, row, strict=True)) for row in rows), COLUMNS)
    return path


def lines(name: str, column: str, number: int = 8) -> Path:
    """The ledes or the headlines of other stories, a line each."""
    path = folder() / name
    path.parent.mkdir(exist_ok=True)
    texts = (getattr(story, column) for story in stories(number, 2))
    path.write_text("".join(f"{text}\n" for text in texts), encoding="utf-8")
    return path


def ledes() -> Path:
    """A file of ledes."""
    return lines("ledes.txt", "lede")


def news() -> Path:
    """The folder of three tables, called as those of the news."""
    for name in ("train", "valid", "test"):
        table(f"news/{name}.parquet")
    return folder() / "news"


def tests() -> Path:
    """The folder of the test sets that bench/experiment.py judges by."""
    lines("tests/rush-test.article.txt", "lede")
    lines("tests/rush-test.title.txt", "headline")
    return table("tests/news.parquet", 8).parent


def preparation() -> PrepareConfig:
    """How the stories become a dataset."""
    return PrepareConfig(
        corpus=CorpusConfig(train=(str(table()),)),
        split=SplitConfig(by="random", num_valid=4),
        subword=SubwordConfig(merges=MERGES),
        dataset=DatasetConfig(output=folder() / "data" / "news-paper"),
    )


def preparation_file() -> Path:
    """The same for `ledeline prepare`."""
    path = folder() / "prepare.toml"
    path.write_text(to_toml(preparation()), encoding="utf-8")
    return path


def configs() -> Path:
    """The folder of our configurations, wherever the program runs."""
    return Path(__file__).resolve().parent.parent / "configs"


def results() -> Path:
    """A folder for what bench/experiment.py makes."""
    return folder() / "results"


def dataset() -> Path:
    """A dataset of the stories."""
    return prepare(preparation()).folder


def data() -> Path:
    """The folder of datasets, which has this one."""
    return dataset().parent


def model() -> Path:
    """A model folder: an untrained EncDec+sGate+SPM that knows the words of the stories."""
    from untrained import write_untrained  # here, for not every program needs torch

    words = Counter(word for story in stories(24, 1) for word in PAPER.words(story.lede))
    system = SystemConfig.of(MODEL, SelectiveGateConfig(), SourcePredictionConfig())
    return write_untrained(folder() / "model", system, words, MERGES)
