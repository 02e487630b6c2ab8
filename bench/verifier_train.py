"""Train the verifier on headlines that readers labelled, and calibrate it.

    python bench/verifier_train.py bench/truth/*.jsonl --pairs valid.parquet train.parquet
        [--changed train.parquet --num-changed 16000] [--output build/verifier]

First it learns to tell which of two ledes a headline was generated from, a lede and the same
with something changed (verifier_corrupt.py); --num-changed 0 leaves that out. Then it learns the
labels of part `train`: the label, the words that are wrong, and which of two headlines of one
lede is better. A twentieth of these ledes is held out, to see how far it has got and, with part
`tune`, to calibrate it (verifier_calibrate.py). No other part is looked at. What the first task
taught is kept in OUTPUT/changed.pt, and used again if it is there; without labels that is all it
does.
"""

import argparse
import json
import math
import random
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

import quick
from ledeline.corpus import Pair
from ledeline.corpus.tables import read_table
from ledeline.inference.checks.checker import bundled_generator
from ledeline.inference.checks.verifier_folder import write_verifier
from ledeline.model.verifier import Judgement, Verifier, VerifierBatch, VerifierShape
from ledeline.text.tokenizer import Tokenizer
from truth_choice import HELD_OUT, is_held_out
from truth_labels import find, load
from truth_stats import auroc
from truth_tiny import TinyTruth, made, write_lines
from verifier_calibrate import calibrate, rule_caps
from verifier_data import (
    UNKNOWN,
    ChangedPair,
    Group,
    changed_pairs,
    exact,
    labelled_groups,
    subword_classes,
)

T = TypeVar("T")
VALUES = torch.tensor([1.0, 0.6, 0.2, 0.0])  # what a label is worth when headlines are compared
LEAST_DIFFERENCE = 0.3  # of values, from which on one of two is better
WARM_UP, LAST_RATE = 0.1, 0.02  # shares of the steps, and of the highest rate
SMOOTHING, CLIP, WEIGHT_DECAY = 0.05, 1.0, 0.02
WORDS_WEIGHT, KINDS_WEIGHT, BETTER_WEIGHT, ALONE_WEIGHT = 0.5, 0.1, 0.5, 0.5
KEPT = "changed.pt"
CHANGED_AT_ONCE = 640


class Trainer:
    """An optimizer, and rates that rise and fall along a cosine: of each part its own."""

    def __init__(self, parts: Sequence[tuple[nn.Module, float]], num_steps: int) -> None:
        self._num_steps, self._done = num_steps, 0
        self._rates = [rate for _, rate in parts]
        self._parameters = [one for part, _ in parts for one in part.parameters()]
        self._optimizer = torch.optim.AdamW(
            [{"params": list(part.parameters()), "lr": rate} for part, rate in parts],
            betas=(0.9, 0.98),
            weight_decay=WEIGHT_DECAY,
        )

    def update(self, loss: Tensor) -> float:
        """One step; returns the loss."""
        self._done += 1
        share = min(1.0, self._done / self._num_steps)
        falling = LAST_RATE + (1 - LAST_RATE) * 0.5 * (1 + math.cos(math.pi * share))
        for group, rate in zip(self._optimizer.param_groups, self._rates, strict=True):
            group["lr"] = rate * min(1.0, share / WARM_UP) * falling
        self._optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(self._parameters, CLIP)
        self._optimizer.step()
        return loss.item()


# --- which lede a headline was generated from ---------------------------------------------------


def changed_loss(verifier: Verifier, pairs: Sequence[ChangedPair]) -> tuple[Tensor, Tensor]:
    """A headline has more support by its own lede than by the changed one, and than the other.

    Returns the loss, and how often that is so.
    """
    views = [exact(view) for pair in pairs for view in pair]
    own, other = supports(verifier(VerifierBatch.of(views))).view(len(pairs), 2, 2).unbind(2)
    margins = torch.stack([own - other, own - other.flip(1)])
    alone = functional.softplus(-own).mean() + functional.softplus(other).mean()
    loss = 2 * functional.softplus(-margins).mean() + ALONE_WEIGHT * alone
    return loss, (margins > 0).float().mean()


def supports(judged: Judgement) -> Tensor:
    """The log-odds that headlines are ok or clumsy. (N,)."""
    logs = judged.labels.log_softmax(-1)
    return logs[:, :2].logsumexp(1) - logs[:, 2:].logsumexp(1)


def learn_changes(verifier: Verifier, pairs: list[ChangedPair], options: Any) -> None:
    """The first task."""
    held_out, pairs = pairs[::HELD_OUT], [p for n, p in enumerate(pairs) if n % HELD_OUT]
    num_batches = len(pairs) // options.changed_batch
    trainer = Trainer([(verifier, options.rate)], options.changed_epochs * num_batches)
    for epoch in range(options.changed_epochs):
        start, losses = time.perf_counter(), []
        for some in batches(pairs, options.changed_batch, options.seed + epoch):
            losses.append(trainer.update(changed_loss(verifier.train(), some)[0]))
        with torch.inference_mode():
            right = changed_loss(verifier.eval(), held_out)[1]
        tell("changed ledes", epoch, losses, f"right lede {right:.4f}", start)


# --- labels -------------------------------------------------------------------------------------


def label_loss(verifier: Verifier, groups: Sequence[Group]) -> Tensor:
    """What the labels of some ledes' headlines cost."""
    batch = VerifierBatch.of([exact(group.view) for group in groups])
    width = batch.headlines.shape[1]
    wrong = torch.cat(
        [
            functional.pad(group.wrong, (0, width - group.wrong.shape[1]), value=float(UNKNOWN))
            for group in groups
        ]
    )
    labels, kinds = (
        torch.cat([group.labels for group in groups]),
        torch.cat([group.kinds for group in groups]),
    )
    return judgement_loss(verifier(batch), batch, labels, kinds, wrong)


def judgement_loss(
    judged: Judgement, batch: VerifierBatch, labels: Tensor, kinds: Tensor, wrong: Tensor
) -> Tensor:
    """Labels, wrong words, kinds of errors, and which of two headlines of a lede is better.

    Labels and kinds (N,), wrong words (N, J), UNKNOWN where readers do not say.
    """
    is_known = (wrong != UNKNOWN) & (batch.headlines != 0)
    loss = functional.cross_entropy(judged.labels, labels, label_smoothing=SMOOTHING)
    if is_known.any():
        doubts = judged.doubts[is_known], wrong[is_known]
        loss = loss + WORDS_WEIGHT * functional.binary_cross_entropy_with_logits(*doubts)
    if (kinds != UNKNOWN).any():
        named = functional.cross_entropy(judged.kinds, kinds, ignore_index=UNKNOWN)
        loss = loss + KINDS_WEIGHT * named
    values = VALUES.to(labels.device)[labels]
    is_better = values.unsqueeze(1) > values + LEAST_DIFFERENCE
    is_better &= batch.rows.unsqueeze(1) == batch.rows
    if is_better.any():
        logs = judged.labels.log_softmax(-1)
        scores = logs[:, :2].logsumexp(1) - logs[:, 3]
        margins = scores.unsqueeze(1) - scores
        loss = loss + BETTER_WEIGHT * functional.softplus(-margins[is_better]).mean()
    return loss


def learn_labels(
    verifier: Verifier, groups: list[Group], held_out: list[Group], options: Any
) -> None:
    """The second task."""
    num_batches = len(groups) // options.batch
    trainer = Trainer([(verifier, options.rate)], options.epochs * num_batches)
    for epoch in range(options.epochs):
        start = time.perf_counter()
        losses = [
            trainer.update(label_loss(verifier.train(), some))
            for some in batches(groups, options.batch, options.seed + epoch)
        ]
        tell("labels", epoch, losses, f"AUROC of false {measure(verifier, held_out):.4f}", start)


@torch.inference_mode()
def measure(verifier: Verifier, groups: Sequence[Group]) -> float:
    """The AUROC of false headlines."""
    scores, truth = [], []
    for group in groups:
        judged = verifier.eval()(VerifierBatch.of([exact(group.view)]))
        scores += supports(judged).tolist()
        truth += [float(label == 3) for label in group.labels.tolist()]
    return auroc(np.array(scores), np.array(truth))


# --- what both have -----------------------------------------------------------------------------


def batches(items: Sequence[T], size: int, seed: int) -> list[list[T]]:
    """Full batches in a random order."""
    order = list(items)
    random.Random(seed).shuffle(order)
    return [order[start : start + size] for start in range(0, len(order) - size + 1, size)]


def tell(what: str, epoch: int, losses: Sequence[float], result: str, start: float) -> None:
    mean = sum(losses) / max(1, len(losses))
    seconds = time.perf_counter() - start
    print(f"{what}, epoch {epoch + 1}: loss {mean:.4f}, {result}, {seconds:.0f} s", flush=True)


def read_changed(options: Any, tokenizer: Tokenizer) -> list[ChangedPair]:
    """Changed ledes of a table, with headlines."""
    ledes = [
        row.lede
        for row in read_table(options.changed, lede="lede", headline="headline", date=None)
        if isinstance(row, Pair)
    ]
    ledes = random.Random(options.seed).sample(ledes, min(len(ledes), options.num_changed))
    pairs: list[ChangedPair] = []
    for start in range(0, len(ledes), CHANGED_AT_ONCE):
        some = ledes[start : start + CHANGED_AT_ONCE]
        pairs += changed_pairs(some, bundled_generator().engine, tokenizer, start)
        print(f"\r{start + len(some):,} of {len(ledes):,} ledes changed", end="", flush=True)
    print(f": {len(pairs):,} pairs")
    return pairs


def read_labelled(options: Any, tokenizer: Tokenizer) -> dict[str, list[Group]]:
    """Labelled headlines: to train on, held out of these, and to calibrate with."""
    found = find(load(options.labels, ["train", "tune"]), options.pairs)
    groups = labelled_groups(
        found.items,
        bundled_generator().engine,
        tokenizer,
        lambda number: print(f"\r{number:,} ledes", end="", flush=True),
    )
    print(f", {len(found.items):,} headlines; {found.missing:,} ledes not found", flush=True)
    parts: dict[str, list[Group]] = {"train": [], "held out": [], "tune": []}
    for group in groups:
        judged = group.found[0].judged
        is_kept = judged.part == "train" and is_held_out(judged.lede)
        parts["held out" if is_kept else judged.part].append(group)
    return parts


def first_task(options: Any, tokenizer: Tokenizer) -> Verifier:
    """A verifier that has learned from changed ledes, if there are any."""
    torch.manual_seed(options.seed)
    size = bundled_generator().engine.size
    shape = VerifierShape(tokenizer.vocabulary_size, generator_size=size)
    verifier = Verifier(shape, options.dropout)
    verifier.classes.copy_(subword_classes(tokenizer.types))
    kept = options.output / KEPT
    if kept.exists():
        verifier.load_state_dict(torch.load(kept, weights_only=True))
    elif options.num_changed:
        learn_changes(verifier, read_changed(options, tokenizer), options)
        torch.save(verifier.state_dict(), kept)
    return verifier


def train(options: Any) -> None:
    """All of it."""
    tokenizer = Tokenizer.load("shipped")
    options.output.mkdir(parents=True, exist_ok=True)
    verifier = first_task(options, tokenizer)
    if not options.labels:
        return
    parts = read_labelled(options, tokenizer)
    torch.manual_seed(options.seed)
    learn_labels(verifier, parts["train"], parts["held out"], options)
    verifier.eval()
    caps = rule_caps(one for part in parts.values() for group in part for one in group.found)
    others = parts["held out"] + parts["tune"]
    calibration = calibrate(verifier, others, caps)
    write_verifier(options.output, verifier, calibration)
    print(f"{options.output}: {calibration}")


def in_parts(tiny: TinyTruth) -> Path:
    """The made-up labels with parts to train on and to calibrate with."""
    rows = [json.loads(line) for line in tiny.labels.read_text("utf-8").splitlines()]
    for row in rows:
        row["part"] = "tune" if int(row["lede"], 16) % 3 == 0 else "train"
    path = tiny.labels.with_name("parts.jsonl")
    write_lines(path, rows)
    return path


def parsed(arguments: Sequence[str] | None = None) -> tuple[argparse.Namespace, bool]:
    """The options, and whether this is a quick run."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("labels", nargs="*", type=Path, metavar="LABELS")
    parser.add_argument("--pairs", nargs="+", type=Path, default=[], metavar="TABLE")
    parser.add_argument("--changed", type=Path, metavar="TABLE", help="ledes to change")
    parser.add_argument("--num-changed", type=int, default=0)
    parser.add_argument("--changed-epochs", type=int, default=2)
    parser.add_argument("--changed-batch", type=int, default=24)
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--batch", type=int, default=16, help="ledes of a step")
    parser.add_argument("--rate", type=float, default=5e-4)
    parser.add_argument("--dropout", type=float, default=0.2)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--output", type=Path, default=Path("build/verifier"))
    is_quick = quick.offer(parser)
    options = parser.parse_args(arguments)
    if is_quick:
        tiny = made()
        options.labels, options.pairs, options.changed = [in_parts(tiny)], [tiny.pairs], tiny.pairs
        options.num_changed, options.epochs, options.changed_epochs = 8, 1, 1
        options.batch = options.changed_batch = 1
        options.output = tiny.labels.with_name("verifier")
    if options.labels and not options.pairs:
        parser.error("name tables of --pairs, to find the ledes of the labels in")
    return options, is_quick


def main() -> None:
    train(parsed()[0])


if __name__ == "__main__":
    main()
