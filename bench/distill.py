"""Better headlines to learn from: a teacher writes, a judge and the rules choose, a model learns.

    python bench/distill.py write judge choose train --model runs/large/best --output runs/distill

- `write`: the teacher's candidates for some training ledes, found by a beam;
- `judge`: a judge learns from labels (bench/judge.py), and judges these and the publishers' own;
- `choose`: datasets of as many pairs each, and pairs of a better and a worse headline:
    `publishers` as they are; `clean`: those that neither the rules nor the judge doubts;
    `distilled`: the teacher's best by its own score; `verified`: the teacher's best by the judge,
    where that is supported; `mix`: the better by the judge of publisher's and verified;
- `train`: from the teacher's weights, a model learns each for as many steps, and `prefer` goes on
    from `mix` with pairs of headlines (bench/prefer.py); `mix+spm` learns `mix` with the SPM. Each
    writes headlines of validation ledes, which go to OUTPUT/NAME.npz; its weights, in int8, go to
    OUTPUT/NAME.

With `--all` each dataset has all of its pairs, and then they are not of one size.

Legend: N headlines, K of them of one lede.
"""

import argparse
import gc
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
import torch

import judge as judging
import quick
from distill_data import (
    Labels,
    Sequences,
    Written,
    doubted,
    packed_labels,
    write_dataset,
)
from judge import DEVICE, WORTH, half
from ledeline.config import DataConfig, SearchConfig
from ledeline.config.training import LoopConfig, RunConfig, ValidationConfig
from ledeline.core.errors import LedelineError
from ledeline.data.dataset import Dataset, Ids, Split
from ledeline.model.addons.spm import SourcePredictionConfig
from ledeline.model.format.model_folder import load_model
from ledeline.model.format.pack import pack
from ledeline.model.system import System
from ledeline.model.system_config import SystemConfig
from ledeline.search.beam import search
from ledeline.text.subwords import SPECIALS
from ledeline.train.loop import train as train_system
from ledeline.train.optimizers import OPTIMIZERS
from ledeline.train.schedules import SCHEDULES
from ledeline.train.train_config import TrainConfig
from prefer import (
    PreferenceOptions,
    learn_preferences,
    preferences_of,
    read_preferences,
    save,
)
from verifier_data import MAX_LEDE

WRITTEN: Final = "written.npz"
JUDGED: Final = "judged.npz"
PREFERENCES: Final = "preferences.npz"
VARIANTS: Final = ("publishers", "clean", "distilled", "verified", "mix")
PREFER: Final = "prefer"
SPM: Final = "mix+spm"
MAX_WRITTEN: Final = 40  # sub-words
QUICK: Final = {
    "ledes": 12,
    "beam": 2,
    "tokens": 60,
    "tuning_epochs": 1,
    "tried": 4,
    "good": 0.0,
    "poor": 1.0,
}


def sequences(split: Split, rows: Ids | None = None) -> tuple[Sequences, Sequences]:
    """Ledes and headlines of a split."""
    both = []
    for column in (split.sources, split.headlines):
        starts = np.concatenate([[0], np.cumsum(column.lengths())]).astype(np.int64)
        whole = Sequences(column.joined(), starts)
        both.append(whole if rows is None else whole.taken(rows))
    return both[0], both[1]


@torch.inference_mode()
def write(model: System, ledes: Sequences, options: Any) -> tuple[Written, dict[str, Any]]:
    """The best headlines of each lede, and their scores."""
    config = SearchConfig(
        beam=options.beam, n_best=options.beam, max_length=MAX_WRITTEN, block_ngrams=2
    )
    order = np.argsort(ledes.lengths, kind="stable")
    found: list[list[Any]] = [[] for _ in range(len(ledes))]
    began = time.perf_counter()
    for at in range(0, len(order), options.ledes_at_once):
        rows = order[at : at + options.ledes_at_once]
        with half():
            lists = search(model, *ledes.padded(rows), config)
        for row, one in zip(rows.tolist(), lists, strict=True):
            found[row] = [
                h for h in one if h.ids and not h.truncated and min(h.ids) >= len(SPECIALS)
            ]
    print(f"{len(ledes):,} ledes in {time.perf_counter() - began:.0f} s", flush=True)
    rows_of = np.repeat(np.arange(len(ledes)), [len(one) for one in found])
    headlines = Sequences.of([h.ids for one in found for h in one])
    scores = np.array([h.score for one in found for h in one])
    return Written(ledes, headlines, rows_of), {"scores": scores}


def with_publishers(written: Written, publishers: Sequences) -> tuple[Written, Ids]:
    """The publishers' headlines before the others of each lede.

    And where each stood: the publishers' by their lede, then the others.
    """
    both = publishers.joined(written.headlines)
    rows = np.concatenate([np.arange(len(publishers)), written.rows])
    order = np.argsort(rows, kind="stable")
    return Written(written.ledes, both.taken(order), rows[order]), order


class Run:
    """The steps, and what they share."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.options, self.output = options, options.output
        self.dataset = Dataset(options.data)
        self.tokenizer = self.dataset.tokenizer

    def teacher(self) -> System:
        """The model that writes."""
        return load_model(self.options.model).model.to(DEVICE).eval()

    def write(self) -> None:
        """Candidates of the teacher, beside the publisher's headline."""
        split = self.dataset["train"]
        rng = np.random.default_rng(self.options.seed)
        number = min(self.options.ledes, len(split))
        rows = np.sort(rng.choice(len(split), number, replace=False))
        short = split.sources.lengths()[rows] <= MAX_LEDE
        ledes, publishers = sequences(split, rows[short])
        written, more = write(self.teacher(), ledes, self.options)
        scores = np.concatenate([np.zeros(len(ledes)), more["scores"]])
        everything, order = with_publishers(written, publishers)
        own = (order < len(ledes)).astype(np.int64)
        everything.saved(self.output / WRITTEN, scores=scores[order], is_publisher=own)

    def judge(self) -> None:
        """What the judge and the rules say of all of them."""
        labels = Labels.read(self.options.labels)
        made = judging.new_judge(self.options.model, self.options)
        judging.train(made, labels, self.options)
        judging.measure(made, labels)
        torch.save(made.state_dict(), self.output / "judge.pt")
        written, arrays = Written.read(self.output / WRITTEN)
        began = time.perf_counter()
        found = judging.probabilities(made, written)
        print(f"{len(found):,} headlines judged in {time.perf_counter() - began:.0f} s", flush=True)
        began = time.perf_counter()
        rules = doubted(written, self.tokenizer)
        print(f"rules in {time.perf_counter() - began:.0f} s: {rules.mean():.3f}", flush=True)
        np.savez_compressed(
            self.output / JUDGED, worth=found @ WORTH, labels=found.argmax(1), doubted=rules
        )
        for name, own in (("publishers", 1), ("teacher", 0)):
            some = arrays["is_publisher"] == own
            print(f"{name}: worth {(found @ WORTH)[some].mean():.3f}", flush=True)

    def choose(self) -> None:
        """Datasets of as many pairs each."""
        written, arrays = Written.read(self.output / WRITTEN)
        with np.load(self.output / JUDGED) as found:
            worth = np.where(found["doubted"], 0.0, found["worth"])
        is_own = arrays["is_publisher"] == 1
        first, best, better, worse = [], [], [], []
        publishers = np.flatnonzero(is_own)
        mixed = []
        for numbers, own in zip(written.by_lede(), publishers.tolist(), strict=True):
            ours = numbers[~is_own[numbers]]
            if not len(ours):
                continue
            top = int(ours[np.argmax(worth[ours])])
            low = int(ours[np.argmin(worth[ours])])
            first.append(int(ours[np.argmax(arrays["scores"][ours])]))
            if worth[top] >= self.options.good:
                best.append(top)
            either = own if worth[own] > worth[top] - self.options.favour else top
            if worth[either] >= self.options.good:
                mixed.append(either)
            if worth[top] >= self.options.good and worth[low] <= self.options.poor:
                better.append(top)
                worse.append(low)
        clean = publishers[worth[publishers] >= self.options.good]
        lists = (publishers, clean, first, best, mixed)
        chosen = {
            name: np.asarray(one, np.int64) for name, one in zip(VARIANTS, lists, strict=True)
        }
        sizes = [len(one) for one in chosen.values()]
        number = max(sizes) if self.options.all else min(sizes)
        print(
            {name: len(one) for name, one in chosen.items()},
            f"preferences {len(better):,}",
            f"mix has {is_own[chosen['mix']].mean():.3f} of publishers",
            flush=True,
        )
        rng = np.random.default_rng(self.options.seed)
        rows = np.arange(min(self.options.tried, len(self.dataset["valid"])))
        valid = sequences(self.dataset["valid"], rows)
        for name, numbers in chosen.items():
            some = np.sort(rng.choice(numbers, min(number, len(numbers)), replace=False))
            train = written.ledes.taken(written.rows[some]), written.headlines.taken(some)
            write_dataset(
                self.output / "data" / name, self.tokenizer, {"train": train, "valid": valid}
            )
        preferences = np.array([better, worse], np.int64).reshape(2, -1)
        np.savez(self.output / PREFERENCES, both=preferences)

    def train(self) -> None:
        """A model of each."""
        for name in self.options.variants or (*VARIANTS, PREFER, SPM):
            began = time.perf_counter()
            if name == PREFER:
                self._prefer()
            else:
                self._learn(name)
            print(f"{name}: {time.perf_counter() - began:.0f} s", flush=True)
            self._try(name)
            gc.collect()

    def _learn(self, name: str) -> None:
        """Go on from the teacher with a dataset."""
        options = self.options
        system = load_model(options.model).model.config
        if name == SPM:
            system = SystemConfig.of(system.system, SourcePredictionConfig())
        config = TrainConfig(
            data=DataConfig(dataset=self.output / "data" / name.partition("+")[0]),
            system=system.system,
            addons=system.addons,
            optimizer=OPTIMIZERS["adam"](
                learning_rate=options.tuning_rate, beta2=0.98, epsilon=1e-9
            ),
            schedule=SCHEDULES["warmup_cosine"](warmup_steps=options.warm_up),
            train=LoopConfig(
                batch_unit="source_tokens",
                batch_size=options.tokens,
                divide_loss_by="tokens",
                label_smoothing=0.1,
                clip_norm=1.0,
                epochs=options.tuning_epochs,
                patience=options.tuning_epochs,
                seed=options.seed,
                start_from=options.model,
            ),
            validation=ValidationConfig(headlines=0, samples=0),
            run=RunConfig(),
        )
        train_system(config, self.output / "runs" / name)
        pack([newest(self.output / "runs" / name)], self.output / name, "int8", None, 2)

    def _prefer(self) -> None:
        """Go on from `mix` with better and worse headlines: the judge's, and the readers'."""
        options = self.options
        bundle = load_model(newest(self.output / "runs" / "mix"))
        written, _ = Written.read(self.output / WRITTEN)
        with np.load(self.output / PREFERENCES) as found:
            better, worse = found["both"]
        judged = preferences_of(written, better, worse)
        readers = read_preferences(Labels.read(options.labels), options.seed, worst_good=1)
        print(f"{len(better):,} pairs of the judge, {len(readers.ledes):,} of readers", flush=True)
        model = bundle.model.to(DEVICE)
        learn_preferences(
            model,
            judged.joined(readers),
            PreferenceOptions(rate=options.preference_rate, seed=options.seed),
        )
        save(model.cpu(), bundle.tokenizer, self.output / "runs" / PREFER / "best")
        pack([self.output / "runs" / PREFER / "best"], self.output / PREFER, "int8", None, 2)

    def _try(self, name: str) -> None:
        """Headlines of validation ledes, and what the judge thinks of them."""
        model = load_model(self.output / name).model.to(DEVICE).eval()
        rows = np.arange(min(self.options.tried, len(self.dataset["valid"])))
        ledes, _ = sequences(self.dataset["valid"], rows)
        written, more = write(model, ledes, self.options)
        made = judging.new_judge(self.options.model, self.options)
        made.load_state_dict(torch.load(self.output / "judge.pt", map_location=DEVICE))
        found = judging.probabilities(made, written)
        written.saved(self.output / f"{name}.npz", labels=found, **more)
        firsts = np.array([one[0] for one in written.by_lede() if len(one)])
        worth = found @ WORTH
        tops = np.array([worth[one].max() for one in written.by_lede() if len(one)])
        mean = found[firsts].mean(0)
        print(
            f"{name}: ok {mean[0]:.3f}, clumsy {mean[1]:.3f}, added {mean[2]:.3f}, false "
            f"{mean[3]:.3f} by the judge; worth {worth[firsts].mean():.4f}, of the best "
            f"{tops.mean():.4f}; {written.headlines.lengths[firsts].mean():.1f} sub-words",
            flush=True,
        )


def newest(run: Path) -> Path:
    """The last checkpoint of a run, which is the end of its schedule."""
    return max((run / "checkpoints").iterdir(), key=lambda one: one.name)


STEPS: Final[dict[str, Callable[[Run], None]]] = {
    "write": Run.write,
    "judge": Run.judge,
    "choose": Run.choose,
    "train": Run.train,
}


def parsed(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """The options."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("steps", nargs="*", metavar="STEP", help=", ".join(STEPS))
    parser.add_argument("--model", type=Path, default=Path("runs/large/best"), help="the teacher")
    parser.add_argument("--data", type=Path, default=Path("data/news-natural"))
    parser.add_argument("--labels", type=Path, default=Path("build/labels.npz"))
    parser.add_argument("--output", type=Path, default=Path("runs/distill"))
    parser.add_argument("--ledes", type=int, default=300_000)
    parser.add_argument("--beam", type=int, default=5)
    parser.add_argument("--ledes-at-once", type=int, default=2000)
    parser.add_argument("--favour", type=float, default=0.0, help="what a publisher has ahead")
    parser.add_argument("--all", action="store_true", help="all pairs of each dataset")
    parser.add_argument("--good", type=float, default=0.85, help="worth from which one is learned")
    parser.add_argument("--poor", type=float, default=0.45, help="up to which it may be the worse")
    parser.add_argument("--variants", nargs="*", default=[])
    parser.add_argument("--tokens", type=int, default=56_000)
    parser.add_argument("--tuning-rate", type=float, default=3e-4)
    parser.add_argument("--tuning-epochs", type=int, default=2)
    parser.add_argument("--warm-up", type=int, default=30)
    parser.add_argument("--preference-rate", type=float, default=5e-5)
    parser.add_argument("--tried", type=int, default=1500, help="validation ledes to write for")
    judging.add_sizes(parser)
    is_quick = quick.offer(parser, **judging.QUICK, **QUICK)
    options = parser.parse_args(arguments)
    for what, given, known in (
        ("step", options.steps, STEPS),
        ("variant", options.variants, (*VARIANTS, PREFER, SPM)),
    ):
        for one in (one for one in given if one not in known):
            parser.error(f"there is no {what} {one}; there are {', '.join(known)}")
    if is_quick:
        from distill_tiny import distilling

        given = distilling()
        options.data, options.model, options.output = given.data, given.model, given.output
        options.labels = given.output / "labels.npz"
        tokenizer = Dataset(given.data).tokenizer
        packed_labels([given.labels], [given.pairs], tokenizer).saved(options.labels)
    return options


def main() -> None:
    options = parsed()
    try:
        run = Run(options)
        options.output.mkdir(parents=True, exist_ok=True)
        for one in options.steps or list(STEPS):
            began = time.perf_counter()
            STEPS[one](run)
            print(f"{one}: {time.perf_counter() - began:.0f} s", flush=True)
    except (LedelineError, OSError) as error:
        print(error, file=sys.stderr)
        sys.exit(2)


if __name__ == "__main__":
    main()
