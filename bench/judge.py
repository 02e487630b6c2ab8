"""The judge: a generator and a verifier that learn together whether ledes support headlines.

    python bench/judge.py pack bench/truth/*.jsonl --pairs valid.parquet train.parquet
    python bench/judge.py train --model runs/large/best

`pack` turns labels into ids, for a machine that has no tables. `train` starts from a trained
Transformer, and all of it learns: the judge says which headlines the next model learns from, and
may be as slow as it likes. With `--frozen` the generator stays as it is: that makes a verifier that
stands beside it (bench/verifier_train.py does the same on a CPU, and calibrates it).

Legend: B ledes, N headlines, J their sub-words, G the size of the generator's states.
"""

import argparse
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

import quick
from distill_data import HELD, OTHER, TRAIN, Labels, Sequences, Written, packed_labels
from ledeline.core.errors import LedelineError
from ledeline.data.dataset import Ids
from ledeline.model.attention_system import AttentionSystem
from ledeline.model.format.model_folder import load_model
from ledeline.model.systems.transformer import Transformer, TransformerMemory
from ledeline.model.verifier import Judgement, Verifier, VerifierBatch, VerifierShape
from ledeline.text.subwords import BOS, EOS, PAD
from ledeline.text.tokenizer import Tokenizer
from truth_stats import auroc
from verifier_data import subword_classes
from verifier_train import Trainer, judgement_loss

DEVICE: Final = torch.device("cuda" if torch.cuda.is_available() else "cpu")
FALSE: Final = 3
QUICK: Final = {"size": 8, "heads": 2, "layers": 1, "epochs": 1, "batch": 8}
WORTH = np.array([1.0, 0.6, 0.2, 0.0])  # what a headline is worth, by its label


class Asked(NamedTuple):
    """Some ledes and their headlines, padded."""

    sources: Tensor  # (B, I)
    lengths: Tensor  # (B,), on the CPU
    rows: Tensor  # (N,)
    headlines: Tensor  # (N, J)


def asked(written: Written, ledes: Ids) -> tuple[Asked, Ids]:
    """Some ledes with all their headlines, and the numbers of these."""
    numbers = list(written.by_lede(ledes))
    of_all = np.concatenate(numbers)
    sources, lengths = written.ledes.padded(ledes)
    headlines, _ = written.headlines.padded(of_all)
    rows = np.repeat(np.arange(len(ledes)), [len(one) for one in numbers])
    tensors = (torch.from_numpy(one).to(DEVICE) for one in (sources, rows, headlines))
    sources_, rows_, headlines_ = tensors
    return Asked(sources_, torch.from_numpy(lengths.copy()), rows_, headlines_), of_all


def seen(generator: AttentionSystem, given: Asked) -> VerifierBatch:
    """What the generator makes of headlines. As `VerifierBatch`."""
    mask = given.sources != PAD
    begun = generator.begin(given.sources, given.lengths, mask)
    memory: TransformerMemory = begun.memory
    of_rows = TransformerMemory(
        memory.states[given.rows],
        tuple(one[given.rows] for one in memory.keys_values),
        mask[given.rows],
    )
    first = torch.full_like(given.headlines[:, :1], BOS)
    states, _ = generator.decoder.unroll(
        torch.cat([first, given.headlines], 1), begun.state, of_rows
    )
    ends = (given.headlines != PAD).sum(1, keepdim=True)  # the place of <eos>
    padded = torch.cat([given.headlines, torch.full_like(first, PAD)], 1)
    targets = padded.scatter(1, ends, EOS)
    logs = generator.output(states).float().log_softmax(-1)
    logs = logs.gather(-1, targets.unsqueeze(-1)).squeeze(-1) * (targets != PAD)
    values = memory.states.masked_fill(~mask.unsqueeze(-1), 0.0)
    return VerifierBatch(given.sources, values, given.rows, given.headlines, states, logs)


class Judge(nn.Module):
    """A generator and a verifier on its states."""

    def __init__(self, generator: AttentionSystem, verifier: Verifier, *, frozen: bool) -> None:
        super().__init__()
        self.generator, self.verifier, self.frozen = generator, verifier, frozen

    def forward(self, given: Asked) -> tuple[Judgement, VerifierBatch]:
        """Judge headlines beside their ledes."""
        self.generator.train(self.training and not self.frozen)
        with torch.set_grad_enabled(torch.is_grad_enabled() and not self.frozen):
            batch = seen(self.generator, given)
        floats = (one.float() for one in (batch.values, batch.states))
        values, states = floats
        batch = batch._replace(values=values, states=states)
        judged = self.verifier(batch)
        return Judgement(*(one.float() for one in judged)), batch


def half() -> torch.autocast:
    """Products in bfloat16, on a GPU."""
    return torch.autocast(DEVICE.type, torch.bfloat16, enabled=DEVICE.type == "cuda")


def new_judge(model: Path, options: Any) -> Judge:
    """An untrained verifier on a trained generator."""
    bundle = load_model(model)
    generator = bundle.model
    if not isinstance(generator, Transformer):
        raise SystemExit(f"{model}: only a Transformer can be judged by")
    size = generator.output.weight.shape[1]
    shape = VerifierShape(
        bundle.tokenizer.vocabulary_size,
        options.size,
        options.heads,
        options.layers,
        generator_size=size,
    )
    torch.manual_seed(options.seed)
    verifier = Verifier(shape, options.dropout)
    verifier.classes.copy_(subword_classes(bundle.tokenizer.types))
    return Judge(generator, verifier, frozen=options.frozen).to(DEVICE)


def batches(written: Written, ledes: Ids, size: int, seed: int) -> list[Ids]:
    """Ledes in groups that have about so many headlines together, at random, of like lengths."""
    rng = np.random.default_rng(seed)
    counts = np.bincount(written.rows, minlength=len(written.ledes))[ledes]
    noise = rng.uniform(0, 12, len(ledes))
    order = np.argsort(written.ledes.lengths[ledes] + noise)
    bounds = np.flatnonzero(np.diff(np.cumsum(counts[order]) // size)) + 1
    groups = [ledes[one] for one in np.split(order, bounds) if len(one)]
    return [groups[place] for place in rng.permutation(len(groups))]


def train(judge: Judge, labels: Labels, options: Any) -> None:
    """Learn the labels of part `train`."""
    written = labels.written
    parts = np.full(len(written.ledes), OTHER)
    parts[written.rows] = labels.parts
    ledes = np.flatnonzero(parts == TRAIN)
    starts = written.headlines.starts
    plan = [one for n in range(options.epochs) for one in batches(written, ledes, options.batch, n)]
    learning: list[tuple[nn.Module, float]] = [(judge.verifier, options.rate)]
    if not judge.frozen:
        learning.append((judge.generator, options.generator_rate))
    trainer = Trainer(learning, len(plan))
    began, losses = time.perf_counter(), []
    for step, some in enumerate(plan, 1):
        given, numbers = asked(written, some)
        wrong, _ = Sequences(labels.wrong, starts).padded(numbers)  # type: ignore[arg-type]
        targets = [
            torch.from_numpy(one).to(DEVICE)
            for one in (labels.labels[numbers], labels.kinds[numbers], wrong)
        ]
        with half():
            judged, batch = judge.train()(given)
        loss = judgement_loss(judged, batch, targets[0], targets[1], targets[2].float())
        losses.append(trainer.update(loss))
        if step % max(1, len(plan) // options.epochs) == 0 or step == len(plan):
            mean, losses = sum(losses) / len(losses), []
            took = time.perf_counter() - began
            print(f"step {step} of {len(plan)}: loss {mean:.4f}, {took:.0f} s", flush=True)


@torch.no_grad()
def probabilities(judge: Judge, written: Written, size: int = 2000) -> npt.NDArray[np.float64]:
    """How likely each headline is to get each label. (N, 4)."""
    found = np.zeros((len(written.rows), 4))
    counts = np.bincount(written.rows, minlength=len(written.ledes))
    order = np.flatnonzero(counts)
    order = order[np.argsort(written.ledes.lengths[order], kind="stable")]
    bounds = np.flatnonzero(np.diff(np.cumsum(counts[order]) // size)) + 1
    judge.eval()
    for some in np.split(order, bounds):
        if not len(some):
            continue
        given, numbers = asked(written, some)
        with half():
            judged, _ = judge(given)
        found[numbers] = judged.labels.softmax(-1).double().cpu().numpy()
    return found


def measure(judge: Judge, labels: Labels) -> None:
    """How well it tells false headlines, and publishers' that add something."""
    found = probabilities(judge, labels.written)
    good = found[:, :2].sum(1)
    for name, part in (("held out", HELD), ("of other ledes", OTHER)):
        rows = labels.parts == part
        ours, theirs = rows & (labels.is_publisher == 0), rows & (labels.is_publisher == 1)
        for whose, some, bad in (
            ("ours, false", ours, labels.labels == FALSE),
            ("publishers', false or added", theirs, labels.labels > 1),
        ):
            if 0 < bad[some].sum() < some.sum():
                area = auroc(good[some], bad[some].astype(float))
                print(f"{name}: AUROC of {whose} {area:.4f} ({some.sum():,} headlines)", flush=True)


def parsed(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """The options."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("part", nargs="?", choices=["pack", "train", "both"], default="both")
    parser.add_argument("labels", nargs="*", type=Path, metavar="LABELS")
    parser.add_argument("--pairs", nargs="+", type=Path, default=[], metavar="TABLE")
    parser.add_argument("--model", type=Path, default=Path("runs/large/best"))
    parser.add_argument("--packed", type=Path, default=Path("build/labels.npz"))
    parser.add_argument("--output", type=Path, default=Path("build/judge.pt"))
    add_sizes(parser)
    is_quick = quick.offer(parser, **QUICK)
    options = parser.parse_args(arguments)
    if is_quick:
        from distill_tiny import distilling

        given = distilling()
        options.model, options.labels, options.pairs = given.model, [given.labels], [given.pairs]
        options.packed, options.output = given.output / "labels.npz", given.output / "judge.pt"
    return options


def add_sizes(parser: argparse.ArgumentParser) -> None:
    """What a judge is, and how it learns."""
    parser.add_argument("--frozen", action="store_true", help="leave the generator as it is")
    parser.add_argument("--size", type=int, default=256)
    parser.add_argument("--heads", type=int, default=4)
    parser.add_argument("--layers", type=int, default=2)
    parser.add_argument("--dropout", type=float, default=0.2)
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--batch", type=int, default=300, help="headlines of a step")
    parser.add_argument("--rate", type=float, default=5e-4)
    parser.add_argument("--generator-rate", type=float, default=1e-4)
    parser.add_argument("--seed", type=int, default=1)


def run(options: argparse.Namespace) -> None:
    """The parts that are asked for."""
    options.output.parent.mkdir(parents=True, exist_ok=True)
    if options.part != "train":
        tokenizer = Tokenizer.load(options.model)
        packed_labels(options.labels, options.pairs, tokenizer).saved(options.packed)
    if options.part == "pack":
        return
    labels = Labels.read(options.packed)
    judge = new_judge(options.model, options)
    train(judge, labels, options)
    measure(judge, labels)
    torch.save(judge.state_dict(), options.output)


def main() -> None:
    options = parsed()
    try:
        run(options)
    except (LedelineError, OSError) as error:
        print(error, file=sys.stderr)
        sys.exit(2)


if __name__ == "__main__":
    main()
