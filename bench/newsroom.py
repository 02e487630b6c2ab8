"""The four systems on the synthetic newsroom: headlines, odd generation, alignment.

Trains each system (or goes on with its run), then evaluates all that are done on stories none of
them has seen, prints the tables of docs/newsroom.md, and writes a report. A GPU is used where there
is one.
"""

import argparse
import json
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

import quick
import tiny
from ledeline.config import (
    CorpusConfig,
    DataConfig,
    DatasetConfig,
    LoopConfig,
    PrepareConfig,
    RunConfig,
    SearchConfig,
    SplitConfig,
    SubwordConfig,
    TextConfig,
    ValidationConfig,
)
from ledeline.core.provenance import commit
from ledeline.corpus.evaluation_sets import EvaluationSet, read_evaluation_set
from ledeline.corpus.table_writer import write_table
from ledeline.data.prepare import prepare
from ledeline.evaluation.alignment_methods import METHODS
from ledeline.evaluation.evaluate import EvaluatedSystem, EvaluationConfig, evaluate
from ledeline.evaluation.evaluation_folder import ALIGNMENT
from ledeline.evaluation.odd_words import KINDS
from ledeline.inference.headliner import Headliner, Options, system_name
from ledeline.model.addons.sgate import SelectiveGateConfig
from ledeline.model.addons.spm import SourcePredictionConfig
from ledeline.model.systems.encdec import EncDecConfig
from ledeline.report import write_report
from ledeline.synth.newsroom import Story, generate
from ledeline.train.callbacks import NullCallback, StepReport
from ledeline.train.loop import train
from ledeline.train.optimizers import AdamConfig
from ledeline.train.schedules import HalvingSchedule
from ledeline.train.train_config import TrainConfig
from ledeline.train.validation import Validation
from machine import described

_GATE, _SPM = {"sgate": SelectiveGateConfig()}, {"spm": SourcePredictionConfig()}
SYSTEMS = {"encdec": {}, "sgate": _GATE, "spm": _SPM, "sgate-spm": _GATE | _SPM}  # their add-ons
TEST_SET = "newsroom"
TEST_SEED = 2  # stories 0, 1, ... of this seed are for testing; those of seed 1 for training


class Lines(NullCallback):
    """A callback that prints a line now and then."""

    def __init__(self, name: str, every: int) -> None:
        self._name, self._every = name, every

    def on_step(self, report: StepReport) -> None:
        """Print a line every so many steps."""
        if report.step % self._every == 0:
            print(
                f"{self._name}: epoch {report.epoch} step {report.step} per token "
                f"{report.losses.per_token:.3f} {report.pairs_per_second:,.0f} pairs/s",
                flush=True,
            )

    def on_validation(self, validation: Validation) -> None:
        """Print the figures of an epoch."""
        print(f"{self._name}: {validation.metrics}", flush=True)

    def on_message(self, sentence: str) -> None:
        """Print a sentence."""
        print(f"{self._name}: {sentence}", flush=True)


def made_dataset(options: argparse.Namespace) -> Path:
    folder: Path = options.folder / "dataset"
    if not folder.exists():
        table = options.folder / "pairs.jsonl"
        stories = generate(options.pairs + options.valid, 1)
        write_table(table, (story._asdict() for story in stories), Story._fields)
        prepare(
            PrepareConfig(
                text=TextConfig(profile="natural"),
                corpus=CorpusConfig(train=(str(table),)),
                split=SplitConfig(by="random", num_valid=options.valid),
                subword=SubwordConfig(merges=options.merges),
                dataset=DatasetConfig(output=folder),
            )
        )
    return folder


def trained(name: str, dataset: Path, options: argparse.Namespace) -> None:
    config = TrainConfig(
        data=DataConfig(dataset=dataset),
        system=EncDecConfig(embedding_size=options.embedding, hidden_size=options.hidden),
        addons=SYSTEMS[name],
        optimizer=AdamConfig(learning_rate=options.rate),
        schedule=HalvingSchedule(halve_from=options.halve_from),
        train=LoopConfig(batch_size=options.batch, epochs=options.epochs, seed=options.seed),
        validation=ValidationConfig(headlines=options.headlines, samples=0),
        run=RunConfig(checkpoint_every=2000),
    )
    train(
        config,
        options.folder / name,
        resume=True,
        max_minutes=options.max_minutes,
        callback=Lines(name, options.every),
    )


def judged(name: str, test_set: EvaluationSet, options: argparse.Namespace) -> dict[str, Any]:
    """Evaluate a system, if that is not done, and read what came of it."""
    best, folder = options.folder / name / "best", options.folder / "evaluations" / name
    headliner = Headliner.load(best)
    result = evaluate(
        EvaluatedSystem(headliner, (str(best),), system_name(headliner)),
        [test_set],
        folder,
        EvaluationConfig(
            options=Options(search=SearchConfig(beam=options.beam), replace_unknown=False)
        ),
        command=shlex.join(["python", *sys.argv]),
        resume=True,
    )
    aligned = json.loads((folder / test_set.name / ALIGNMENT).read_text())
    return result.summary.as_dict() | {"quality": aligned["quality"]}


def tables(results: Sequence[dict[str, Any]]) -> str:
    lines = [
        "| system | R-1 | R-2 | R-L | repeating | lacking | irrelevant |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    for result in results:
        one = result["sets"][TEST_SET]
        scores = [f"{100 * one[name]['f1']:.2f}" for name in ("rouge1", "rouge2", "rougeL")]
        odd = [str(one["odd"][kind]) for kind in KINDS]
        lines.append(f"| {' | '.join([result['system'], *scores, *odd])} |")
    figures = ["precision", "recall", "error_rate", "dropped_recall", "pad_recall"]
    heads = [name.replace("_", " ").replace("pad", "`<pad>`") for name in figures]
    lines += ["", f"| system | aligned by | {' | '.join(heads)} |", "| --- | --- |" + " ---: |" * 5]
    for result in results:
        for method, score in result["quality"].items():
            baseline = METHODS[method].startswith("baseline")
            if baseline and result is not results[-1]:
                continue
            values = ["" if score[name] is None else f"{score[name]:.3f}" for name in figures]
            who = "-" if baseline else result["system"]
            lines.append(f"| {who} | {METHODS[method]} | {' | '.join(values)} |")
    signature = results[0]["sets"][TEST_SET]["signature"]
    return "\n".join([*lines, "", f"`{signature}`"])


def facts(folder: Path) -> str:
    """When the best epoch came, and at what loss."""
    lines = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    valid = [line for line in lines if line["event"] == "valid"]
    best = min(valid, key=lambda line: line["per_token"])
    return f"best of {len(valid)} epochs: {best['epoch']}, loss per token {best['per_token']:.4f}"


def read_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, default=Path("build/newsroom"))
    parser.add_argument("--systems", nargs="*", choices=SYSTEMS, default=list(SYSTEMS))
    parser.add_argument("--pairs", type=int, default=60_000)
    parser.add_argument("--merges", type=int, default=1500)
    parser.add_argument("--embedding", type=int, default=200)
    parser.add_argument("--hidden", type=int, default=400)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--rate", type=float, default=0.002)
    parser.add_argument("--epochs", type=int, default=7)
    parser.add_argument("--halve-from", type=int, default=5)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--max-minutes", type=float)
    parser.add_argument("--beam", type=int, default=20)
    parser.add_argument("--stories", type=int, default=1000, help="for testing")
    parser.add_argument("--only-train", action="store_true", help="leave the tables out")
    parser.set_defaults(valid=1000, headlines=200, every=200)
    sizes = {"embedding": tiny.MODEL.embedding_size, "hidden": tiny.MODEL.hidden_size, "epochs": 1}
    numbers = {"pairs": 10, "valid": 4, "headlines": 2, "stories": 4, "merges": tiny.MERGES}
    systems = ["encdec", "sgate-spm"]
    quick.offer(parser, folder=tiny.folder, systems=systems, beam=2, every=5, **sizes, **numbers)
    return parser.parse_args()


def main() -> None:
    options = read_options()
    options.folder.mkdir(parents=True, exist_ok=True)
    dataset = made_dataset(options)
    for name in options.systems:
        trained(name, dataset, options)
    if options.only_train:
        return
    table = options.folder / "test.jsonl"
    stories = generate(options.stories, TEST_SEED)
    write_table(table, (story._asdict() for story in stories), Story._fields)
    test_set = read_evaluation_set(f"{TEST_SET}={table}")
    done = [name for name in SYSTEMS if (options.folder / name / "best").exists()]
    results = []
    for name in done:
        results.append(judged(name, test_set, options))
        print(f"{results[-1]['system']}: {facts(options.folder / name)}")
    write_report(
        [options.folder / "evaluations" / name for name in done],
        options.folder / "report.html",
        title="The four systems on the synthetic newsroom",
    )
    gpu = f"{torch.cuda.get_device_name()}, " if torch.cuda.is_available() else ""
    print(f"{described()}, {gpu}torch {torch.__version__}, commit {commit()}\n")
    print(tables(results))


if __name__ == "__main__":
    main()
