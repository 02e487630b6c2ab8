"""Settings for all tests, and the dataset that many of them train on."""

import os

# For products as small as those of tests more threads only wait for each other; and some tests of the
# server count on one. Torch reads it when it is imported.
os.environ.setdefault("OMP_NUM_THREADS", "1")

from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import pytest
import torch
from hypothesis import settings
from safetensors.torch import save_file

from ledeline.config import (
    CorpusConfig,
    DatasetConfig,
    FilterConfig,
    PrepareConfig,
    SplitConfig,
    SubwordConfig,
    TextConfig,
)
from ledeline.corpus.table_writer import write_table
from ledeline.data.prepare import prepare
from ledeline.model.build import build
from ledeline.model.format.model_folder import write_description
from ledeline.model.system_config import SystemConfig
from ledeline.model.systems.encdec import EncDec
from ledeline.synth.newsroom import Story, generate
from ledeline.text.profiles import PROFILES
from ledeline.text.subwords import Subwords
from ledeline.text.tokenizer import Tokenizer
from systems import encdec

if TYPE_CHECKING:
    from browser import Log, Page

# No deadlines: speed is measured in bench/. On a shared runner every run tries the same examples.
settings.register_profile("default", deadline=None)
settings.register_profile("ci", deadline=None, derandomize=True)
settings.load_profile("ci" if os.environ.get("CI") else "default")

# Fused kernels run on the CPU where there is no GPU, if a test asks for it. Not imported so far.
if not torch.cuda.is_available():
    os.environ["TRITON_INTERPRET"] = "1"

# Files that take longest, so that they begin first and no process is left alone with one at the end.
LONGEST = (
    "system/test_it_learns.py",
    "train/test_two_hosts.py",
    "system/test_own_data.py",
    "train/test_processes.py",
    "train/test_cuda_graphs.py",
    "cli/test_generate.py",
    "train/test_loop.py",
    "system/test_house.py",
    "rouge/test_perl.py",
    "server/test_page.py",
    "train/test_kill.py",
    "system/test_bench.py",
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    ranks = {Path(__file__).parent / name: rank for rank, name in enumerate(LONGEST)}
    items.sort(key=lambda item: ranks.get(item.path, len(ranks)))


SYSTEMS = {  # name -> gate, SPM
    "EncDec": (False, False),
    "EncDec+sGate": (True, False),
    "EncDec+SPM": (False, True),
    "EncDec+sGate+SPM": (True, True),
}


class PrepareNewsroom(Protocol):
    """Makes a dataset of the newsroom's stories in a folder."""

    def __call__(
        self,
        folder: Path,
        pairs: int,
        *,
        seed: int,
        merges: int,
        num_valid: int,
        longest: int = 0,
        cut: bool = False,
    ) -> Path: ...


def shortened(story: dict[str, str], number: int) -> dict[str, str]:
    """A story cut to 5 to 13 words, and its headline to 4, so that steps are short."""
    lede, headline = story["lede"].split(), story["headline"].split()
    cut = {"lede": " ".join(lede[: 5 + number % 9]), "headline": " ".join(headline[:4])}
    return {**story, **cut, "alignment": ""}


@pytest.fixture(scope="session")
def prepare_newsroom() -> PrepareNewsroom:
    def made(
        folder: Path,
        pairs: int,
        *,
        seed: int,
        merges: int,
        num_valid: int,
        longest: int = 0,
        cut: bool = False,
    ) -> Path:
        table = folder / "pairs.jsonl"
        stories = [story._asdict() for story in generate(pairs, seed)]
        if cut:
            stories = [shortened(story, number) for number, story in enumerate(stories)]
        write_table(table, stories, Story._fields)
        config = PrepareConfig(
            text=TextConfig(profile="natural"),
            corpus=CorpusConfig(train=(str(table),)),
            filter=FilterConfig(max_lede_subwords=longest),
            split=SplitConfig(by="random", num_valid=num_valid),
            subword=SubwordConfig(merges=merges),
            dataset=DatasetConfig(output=folder / "dataset"),
        )
        return prepare(config).folder

    return made


@pytest.fixture(scope="module")
def one_thread() -> Iterator[None]:
    """Products as small as those of tests only get slower with more."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="session")
def make_model(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """Makes a model folder: an untrained system, far from uniform, that knows the newsroom's words.

    It is an EncDec with add-ons, if no other system is given.

    Letters that are not ASCII stay unknown to it.
    """

    def made(
        profile: str = "natural",
        *,
        seed: int = 0,
        spm: bool = True,
        merges: int = 300,
        system: SystemConfig | None = None,
    ) -> Path:
        words = Counter(
            word
            for story in generate(200, 1)
            for text in (story.lede, story.headline)
            for word in PROFILES[profile].words(text)
        )
        known = {word: count for word, count in words.items() if word.strip("\uffed").isascii()}
        unknown_words = PROFILES[profile].unknown_words
        subwords = Subwords.learn(known, merges, unknown_words=unknown_words)
        system = system or encdec(sgate=True, spm=spm, embedding_size=16, hidden_size=32)
        model = build(system, len(subwords))
        generator = torch.Generator().manual_seed(seed)
        for parameter in model.parameters():
            torch.nn.init.normal_(parameter, std=0.4, generator=generator)
        folder = tmp_path_factory.mktemp("model")
        write_description(folder, system, Tokenizer(PROFILES[profile], subwords))
        save_file(model.state_dict(), folder / "model.safetensors")
        return folder

    return made


@pytest.fixture(scope="session")
def model_folder(make_model: Callable[..., Path]) -> Path:
    """A model of the profile `natural`."""
    return make_model()


@pytest.fixture(params=SYSTEMS)
def system(request: pytest.FixtureRequest) -> str:
    """Each of the four systems by its name."""
    return str(request.param)


@pytest.fixture(scope="session")
def make() -> Callable[..., EncDec]:
    """Makes a system in float64, for evaluation, every weight and bias random if `spread`."""

    def made(
        name: str,
        *,
        embedding: int = 3,
        hidden: int = 4,
        layers: int = 2,
        dropout: float = 0.0,
        c: float = 10.0,
        vocabulary: int = 11,
        seed: int = 0,
        spread: float = 0.6,
    ) -> EncDec:
        gate, spm = SYSTEMS[name]
        sizes = {"embedding_size": embedding, "hidden_size": hidden, "layers": layers}
        config = encdec(sgate=gate, spm=spm, c=c, dropout=dropout, **sizes)
        assert config.name == name
        model = build(config, vocabulary, seed).double().eval()
        generator = torch.Generator().manual_seed(seed)
        for parameter in model.parameters() if spread else ():
            torch.nn.init.normal_(parameter, std=spread, generator=generator)
        return model

    return made


@pytest.fixture(scope="module")
def shared_page() -> Iterator["Page"]:
    """A page of a headless Chromium; without one the test is skipped."""
    from browser import launched

    with launched() as page:
        yield page


@pytest.fixture
def blank(shared_page: "Page") -> "Page":
    """That page, empty."""
    from browser import reset

    reset(shared_page)
    return shared_page


@pytest.fixture
def log(blank: "Page") -> Iterator["Log"]:
    """What that page writes to the console, and what it asks of the network."""
    from browser import Log

    log = Log(blank)
    yield log
    log.close()
