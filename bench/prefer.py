"""Teach a model to prefer the better of two headlines of one lede.

    python bench/prefer.py --model runs/distill/prefer --labels build/labels.npz --output runs/box

It learns the better one, and that its score, the mean log-probability of its sub-words, is higher:

    loss = -score(better) + WEIGHT * log(1 + exp(-SHARPNESS * (score(better) - score(worse))))

So what a search ranks first is what the judge, or a reader, would. bench/distill.py uses it with
the judge's pairs. Alone it learns from what readers said of a model's own headlines: `--labels` are
packed by bench/judge.py. A good headline stands against one that is false, adds something or is
clumsy.
"""

import argparse
import math
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from safetensors.torch import save_file
from torch import Tensor, nn
from torch.nn import functional

import quick
from distill_data import TRAIN, Labels, Sequences, Written, packed_labels
from judge import DEVICE
from ledeline.core.errors import LedelineError
from ledeline.data.dataset import Ids
from ledeline.model.format.description import WEIGHTS
from ledeline.model.format.model_folder import load_model, write_description
from ledeline.model.format.pack import pack
from ledeline.model.pairs import Pairs
from ledeline.model.system import System
from ledeline.runtime.cpu import has_bfloat16
from ledeline.text.subwords import EOS
from ledeline.text.tokenizer import Tokenizer

BETAS, CLIP, WARM_UP = (0.9, 0.98), 1.0, 0.1


@dataclass(frozen=True)
class PreferenceOptions:
    """How it learns."""

    weight: float = 1.0
    sharpness: float = 8.0
    rate: float = 1e-4
    batch: int = 512  # pairs of headlines
    epochs: int = 1
    seed: int = 1


class Preferences(NamedTuple):
    """Ledes, a headline of each, and a worse one."""

    ledes: Sequences
    better: Sequences
    worse: Sequences

    def joined(self, other: "Preferences") -> "Preferences":
        """These, then the others."""
        return Preferences(*(one.joined(more) for one, more in zip(self, other, strict=True)))


def preferences_of(written: Written, better: Ids, worse: Ids) -> Preferences:
    """Pairs of headlines, given by number."""
    return Preferences(
        written.ledes.taken(written.rows[better]),
        written.headlines.taken(better),
        written.headlines.taken(worse),
    )


def read_preferences(labels: Labels, seed: int, worst_good: int = 0) -> Preferences:
    """A good headline of a lede beside a worse one, by readers; up to two a lede.

    Worse are labels above `worst_good`: 0 for all but ok, 1 for false and added.
    """
    rng = np.random.default_rng(seed)
    better, worse = [], []
    for numbers in labels.written.by_lede():
        own = numbers[(labels.parts[numbers] == TRAIN) & (labels.is_publisher[numbers] == 0)]
        good = rng.permutation(own[labels.labels[own] == 0])
        bad = rng.permutation(own[labels.labels[own] > worst_good])
        for one, other in list(zip(good, bad, strict=False))[:2]:
            better.append(int(one))
            worse.append(int(other))
    return preferences_of(labels.written, np.array(better, np.int64), np.array(worse, np.int64))


def save(model: System, tokenizer: Tokenizer, folder: Path) -> None:
    """A model folder."""
    folder.mkdir(parents=True)
    write_description(folder, model.config, tokenizer)
    save_file(model.state_dict(), folder / f"{WEIGHTS}.safetensors")


def pairs_of(preferences: Preferences, rows: Ids) -> Pairs:
    """Both headlines of some ledes, the better ones first."""
    sources, lengths = preferences.ledes.padded(rows)
    both = preferences.better.taken(rows).joined(preferences.worse.taken(rows))
    targets, ends = both.padded(np.arange(len(both)))
    targets = np.pad(targets, ((0, 0), (0, 1)))
    targets[np.arange(len(targets)), ends] = EOS
    inside = np.arange(targets.shape[1]) <= ends[:, None]
    doubled, twice = np.concatenate([sources, sources]), np.concatenate([lengths, lengths])
    is_valid = np.arange(doubled.shape[1]) < twice[:, None]
    full = bool(is_valid.all())
    mask = torch.from_numpy(inside).to(DEVICE)
    return Pairs(
        sources=torch.from_numpy(doubled).to(DEVICE),
        source_lengths=None if full else torch.from_numpy(twice.copy()),
        source_mask=None if full else torch.from_numpy(is_valid).to(DEVICE),
        targets=torch.from_numpy(targets).to(DEVICE),
        target_mask=mask,
        headline_mask=mask,
    )


def preference_loss(
    model: System, pairs: Pairs, options: PreferenceOptions
) -> tuple[Tensor, Tensor]:
    """The loss of a batch, and how often the better headline has the higher score."""
    scores = -model.losses(pairs).named["target"].float() / pairs.headline_mask.sum(1)
    better, worse = scores.chunk(2)
    ranking = functional.softplus(-options.sharpness * (better - worse)).mean()
    loss = options.weight * ranking - better.mean()
    return loss, (better > worse).float().mean()


def learn_preferences(model: System, given: Preferences, options: PreferenceOptions) -> None:
    """Teach a model, on its device."""
    smoothing = model.label_smoothing
    model.label_smoothing = 0.0
    optimizer = torch.optim.Adam(model.parameters(), lr=options.rate, betas=BETAS)
    plan = [one for n in range(options.epochs) for one in _batches(given, options, n)]
    torch.manual_seed(options.seed)  # of dropout
    began, seen = time.perf_counter(), []
    for step, rows in enumerate(plan, 1):
        share = step / len(plan)
        factor = min(1.0, share / WARM_UP) * 0.5 * (1 + math.cos(math.pi * share))
        for group in optimizer.param_groups:
            group["lr"] = options.rate * factor
        with torch.autocast(DEVICE.type, torch.bfloat16, enabled=_has_half()):
            loss, right = preference_loss(model.train(), pairs_of(given, rows), options)
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        nn.utils.clip_grad_norm_(model.parameters(), CLIP)
        optimizer.step()
        seen.append(torch.stack([loss.detach(), right]))
        if step % max(1, len(plan) // 4) == 0:
            mean, share_right = torch.stack(seen).mean(0).tolist()
            seen, took = [], time.perf_counter() - began
            print(
                f"step {step} of {len(plan)}: loss {mean:.4f}, "
                f"right {share_right:.3f}, {took:.0f} s",
                flush=True,
            )
    model.label_smoothing = smoothing
    model.eval()


def _batches(given: Preferences, options: PreferenceOptions, epoch: int) -> Sequence[Ids]:
    """Rows of similar length together, in a random order."""
    rng = np.random.default_rng([options.seed, epoch])
    order = np.argsort(given.ledes.lengths + rng.uniform(0, 3, len(given.ledes)))
    groups = [order[at : at + options.batch] for at in range(0, len(order), options.batch)]
    return [groups[place] for place in rng.permutation(len(groups))]


def _has_half() -> bool:
    """Whether products in bfloat16 are fast."""
    return DEVICE.type == "cuda" or has_bfloat16()


def parsed(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """The options."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--model", type=Path, default=Path("runs/distill/prefer"))
    parser.add_argument("--labels", type=Path, default=Path("build/labels.npz"))
    parser.add_argument("--output", type=Path, default=Path("runs/box"))
    parser.add_argument("--epochs", type=int, default=1)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--rate", type=float, default=3e-5)
    parser.add_argument("--weight", type=float, default=1.0)
    parser.add_argument("--seed", type=int, default=1)
    is_quick = quick.offer(parser, epochs=1, batch=4)
    options = parser.parse_args(arguments)
    if is_quick:
        from distill_tiny import distilling

        given = distilling()
        options.model, options.output = given.model, given.output
        options.labels = given.output / "labels.npz"
        tokenizer = Tokenizer.load(given.model)
        packed_labels([given.labels], [given.pairs], tokenizer).saved(options.labels)
    return options


def run(options: argparse.Namespace) -> None:
    """Teach a model, and write it."""
    bundle = load_model(options.model)
    given = read_preferences(Labels.read(options.labels), options.seed)
    print(f"{len(given.ledes):,} pairs of readers", flush=True)
    model = bundle.model.to(DEVICE)
    how = PreferenceOptions(
        weight=options.weight,
        rate=options.rate,
        batch=options.batch,
        epochs=options.epochs,
        seed=options.seed,
    )
    learn_preferences(model, given, how)
    save(model.cpu(), bundle.tokenizer, options.output / "float32")
    pack([options.output / "float32"], options.output / "int8", "int8", None, 2)


def main() -> None:
    options = parsed()
    try:
        run(options)
    except (LedelineError, OSError) as error:
        print(error, file=sys.stderr)
        sys.exit(2)


if __name__ == "__main__":
    main()
