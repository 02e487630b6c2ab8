"""The four systems on the synthetic newsroom: headlines, odd generation, alignment.

Trains each system (or goes on with its run), then scores all that are done on stories none of them
has seen, and prints the tables of docs/newsroom.md. A GPU is used where there is one.
"""

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from ledeline import rouge
from ledeline.analysis import odd
from ledeline.analysis.aligner import METHODS, align
from ledeline.analysis.alignment import alignment_score, parse
from ledeline.config import (
    CorpusConfig,
    DataConfig,
    DatasetConfig,
    GateConfig,
    ModelConfig,
    OptimizerConfig,
    PrepareConfig,
    RunConfig,
    SplitConfig,
    SpmConfig,
    SubwordConfig,
    TextConfig,
    TrainConfig,
    ValidationConfig,
)
from ledeline.corpus.newsroom import Story, generate
from ledeline.corpus.tables import write_table
from ledeline.dataset import Batch
from ledeline.model.files import Loaded, load_model
from ledeline.prepare import prepare
from ledeline.search import greedy
from ledeline.train.journal import commit
from ledeline.train.loop import train
from ledeline.train.validation import Validation
from ledeline.train.watch import Look, Nobody
from machine import described

SYSTEMS = {
    "encdec": (False, False),
    "sgate": (True, False),
    "spm": (False, True),
    "sgate-spm": (True, True),
}  # gate, SPM
TEST_SEED = 2  # stories 0, 1, ... of this seed are for testing; those of seed 1 for training


class Lines(Nobody):
    """A watch that prints a line now and then."""

    def __init__(self, name: str) -> None:
        self._name = name

    def looks(self, look: Look) -> None:
        """Print a line every 200 steps."""
        if look.step % 200 == 0:
            print(
                f"{self._name}: epoch {look.epoch} step {look.step} per token "
                f"{look.means.per_token:.3f} {look.pairs_per_second:,.0f} pairs/s",
                flush=True,
            )

    def validates(self, validation: Validation) -> None:
        """Print the figures of an epoch."""
        print(f"{self._name}: {validation.figures}", flush=True)

    def says(self, sentence: str) -> None:
        """Print a sentence."""
        print(f"{self._name}: {sentence}", flush=True)


def made_dataset(options: argparse.Namespace) -> Path:
    folder: Path = options.folder / "dataset"
    if not folder.exists():
        table = options.folder / "pairs.jsonl"
        stories = generate(options.pairs + 1000, 1)
        write_table(table, (story._asdict() for story in stories), Story._fields)
        prepare(
            PrepareConfig(
                text=TextConfig(profile="natural"),
                corpus=CorpusConfig(train=(str(table),)),
                split=SplitConfig(by="random", num_valid=1000),
                subword=SubwordConfig(merges=options.merges),
                dataset=DatasetConfig(output=folder),
            )
        )
    return folder


def trained(name: str, dataset: Path, options: argparse.Namespace) -> None:
    gate, spm = SYSTEMS[name]
    config = TrainConfig(
        data=DataConfig(dataset=dataset),
        model=ModelConfig(embedding_size=options.embedding, hidden_size=options.hidden),
        gate=GateConfig(enabled=gate),
        spm=SpmConfig(enabled=spm),
        train=OptimizerConfig(
            batch_size=options.batch,
            learning_rate=options.rate,
            epochs=options.epochs,
            halve_from=options.halve_from,
            seed=options.seed,
        ),
        validation=ValidationConfig(headlines=200, samples=0),
        run=RunConfig(checkpoint_every=2000),
    )
    train(
        config,
        options.folder / name,
        resume=True,
        max_minutes=options.max_minutes,
        watch=Lines(name),
    )


def headlines(loaded: Loaded, stories: Sequence[Story]) -> list[list[str]]:
    model, subwords, profile = loaded
    found = []
    for start in range(0, len(stories), 100):
        some = stories[start : start + 100]
        batch = Batch.of([(subwords.encode(profile.words(story.lede)), []) for story in some])
        found += [
            subwords.decode(ids) for ids in greedy(model, batch.sources, batch.source_lengths)
        ]
    return found


def scored(loaded: Loaded, stories: Sequence[Story]) -> dict[str, Any]:
    profile = loaded.profile
    written = headlines(loaded, stories)
    rouges = rouge.mean(
        rouge.score(profile.join(words), story.headline)
        for words, story in zip(written, stories, strict=True)
    )
    odds = odd.total(
        odd.count(*(profile.plain(words) for words in (one, *map(profile.words, story[1::-1]))))
        for one, story in zip(written, stories, strict=True)
    )
    gold = [parse(story.alignment) for story in stories]
    links = align(loaded, [(story.lede, story.headline) for story in stories])
    return {
        "rouge": [score.f1 for score in (rouges.rouge1, rouges.rouge2, rouges.rouge_l)],
        "odd": [odds.repeating, odds.lacking, odds.irrelevant],
        "alignment": {method: alignment_score(one, gold) for method, one in links.items()},
    }


def tables(results: dict[str, dict[str, Any]]) -> str:
    lines = [
        "| system | R-1 | R-2 | R-L | repeating | lacking | irrelevant |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    for name, result in results.items():
        scores = " | ".join(f"{100 * score:.2f}" for score in result["rouge"])
        lines.append(f"| {name} | {scores} | " + " | ".join(map(str, result["odd"])) + " |")
    lines += [
        "",
        "| system | aligned by | precision | recall | error rate |",
        "| --- | --- | ---: | ---: | ---: |",
    ]
    for name, result in results.items():
        for method, score in result["alignment"].items():
            if METHODS[method].startswith("baseline") and name != list(results)[-1]:
                continue
            values = " | ".join(
                f"{v:.3f}" for v in (score.precision, score.recall, score.error_rate)
            )
            who = "-" if METHODS[method].startswith("baseline") else name
            lines.append(f"| {who} | {METHODS[method]} | {values} |")
    return "\n".join(lines)


def facts(folder: Path) -> str:
    """When the best epoch came, and at what loss."""
    lines = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    valid = [line for line in lines if line["event"] == "valid"]
    best = min(valid, key=lambda line: line["per_token"])
    return f"best of {len(valid)} epochs: {best['epoch']}, loss per token {best['per_token']:.4f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, default=Path("build/newsroom"))
    parser.add_argument("--systems", nargs="*", choices=SYSTEMS, default=list(SYSTEMS))
    parser.add_argument("--pairs", type=int, default=60_000)
    parser.add_argument("--merges", type=int, default=1500)
    parser.add_argument("--embedding", type=int, default=200)
    parser.add_argument("--hidden", type=int, default=400)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--rate", type=float, default=0.002)
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--halve-from", type=int, default=4)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--max-minutes", type=float)
    parser.add_argument("--stories", type=int, default=1000, help="for testing")
    parser.add_argument("--only-train", action="store_true", help="leave the tables out")
    options = parser.parse_args()

    options.folder.mkdir(parents=True, exist_ok=True)
    dataset = made_dataset(options)
    for name in options.systems:
        trained(name, dataset, options)
    if options.only_train:
        return
    stories, results = list(generate(options.stories, TEST_SEED)), {}
    for name in SYSTEMS:
        if (options.folder / name / "best").exists():
            loaded = load_model(options.folder / name / "best")
            results[loaded.model.config.name] = scored(loaded, stories)
            print(f"{loaded.model.config.name}: {facts(options.folder / name)}")
    gpu = f"{torch.cuda.get_device_name()}, " if torch.cuda.is_available() else ""
    print(f"{described()}, {gpu}torch {torch.__version__}, commit {commit()}\n")
    print(tables(results))


if __name__ == "__main__":
    main()
