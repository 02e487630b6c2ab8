"""Pre-train the verifier on pairs of lede and headline, on a GPU.

Two tasks at once, on what readers never labelled:

- publishers' headlines are predicted word by word, as a generator would;
- headlines are generated from a lede and from the same lede changed (`verifier_corrupt`); each is
  paired with both, and the verifier must say which lede it was generated from. As each lede and each
  headline is in a right and in a wrong pair, only what one says of the other tells them apart.
"""

import argparse
import json
import lzma
import math
import random
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from ledeline import Headliner
from ledeline.config import SearchConfig
from ledeline.model.layers.attention import Memory
from ledeline.model.verifier import GeneratorView, Judgement, Verifier, VerifierShape
from ledeline.search import search
from ledeline.search.step_model import map_tensors
from ledeline.text.tokenizer import Tokenizer
from verifier_corrupt import corrupt

LEDE, HEADLINE = 90, 36
BEGIN, END = 2, 3


def read_pairs(paths: list[Path], limit: int) -> tuple[np.ndarray, np.ndarray]:
    """Ledes (N, 90) and headlines (N, 36), padded with 0."""
    ledes, headlines = [], []
    for path in paths:
        raw = lzma.open(path).read() if path.suffix == ".xz" else path.read_bytes()
        number = int(np.frombuffer(raw, np.uint32, 1)[0])
        lengths = np.frombuffer(raw, np.uint8, 2 * number, 4).astype(np.int64)
        a, b = lengths[:number], lengths[number:]
        total = int(lengths.sum())
        low = np.frombuffer(raw, np.uint8, total, 4 + 2 * number).astype(np.int16)
        ids = low + np.frombuffer(raw, np.uint8, total, 4 + 2 * number + total).astype(np.int16) * 256
        both = np.stack([a, b], 1).ravel()
        ends = np.cumsum(both)
        starts = ends - both
        for out, width, which in ((ledes, LEDE, 0), (headlines, HEADLINE, 1)):
            rows = np.zeros((number, width), np.int16)
            length, start = both[which::2], starts[which::2]
            columns = np.arange(width)
            mask = columns < length[:, None]
            rows[mask] = ids[(start[:, None] + columns)[mask]]
            out.append(rows)
    return np.concatenate(ledes)[:limit], np.concatenate(headlines)[:limit]


def _changed(job: tuple[int, np.ndarray]) -> list[tuple[int, str, list[int]]]:
    seed, ledes = job
    tokenizer, rng = Tokenizer.load("shipped"), random.Random(seed)
    all_words = [tokenizer.decode_words([i for i in row.tolist() if i]) for row in ledes]
    out = []
    for number, words in enumerate(all_words):
        if found := corrupt(words, rng, all_words):
            ids = tokenizer.encode(found[1])
            if len(ids) <= LEDE:
                out.append((number, found[0], ids))
    return out


def changed_ledes(ledes: np.ndarray, workers: int) -> tuple[np.ndarray, np.ndarray, list[str]]:
    """Rows that were changed, their changed ledes, and what was changed."""
    size = 2000
    jobs = [(n, ledes[n : n + size]) for n in range(0, len(ledes), size)]
    rows, ids, kinds = [], [], []
    with ProcessPoolExecutor(workers) as pool:
        for (start, _), some in zip(jobs, pool.map(_changed, jobs), strict=True):
            for number, kind, one in some:
                rows.append(start + number)
                kinds.append(kind)
                ids.append(one)
    padded = np.zeros((len(ids), LEDE), np.int16)
    for row, one in zip(padded, ids, strict=True):
        row[: len(one)] = one
    return np.array(rows), padded, kinds


def generate(headliner: Headliner, ledes: np.ndarray, beam: int, batch: int) -> np.ndarray:
    """The best headline of each lede, (N, 36)."""
    lengths = (ledes > 0).sum(1).astype(np.int64)
    out = np.zeros((len(ledes), HEADLINE), np.int16)
    order = np.argsort(-lengths, kind="stable")
    config = SearchConfig(beam=beam, n_best=1, block_ngrams=2, max_length=HEADLINE)
    for start in range(0, len(order), batch):
        rows = order[start : start + batch]
        ids = ledes[rows][:, : lengths[rows].max()].astype(np.int64)
        for row, found in zip(rows, search(headliner._model.step_model, ids, lengths[rows], config), strict=True):
            if found:
                out[row, : len(found[0].ids)] = found[0].ids
    return out


def useful(ledes: np.ndarray, changed: np.ndarray, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Whether both headlines differ, and one has a word that the change touched."""
    keep = np.zeros(len(ledes), bool)
    for n in range(len(ledes)):
        x, y = a[n][a[n] > 0].tolist(), b[n][b[n] > 0].tolist()
        if not x or not y or x == y:
            continue
        old, new = ledes[n].tolist(), changed[n].tolist()
        touched = {i for i, j in zip(old, new, strict=True) if i != j} | {
            j for i, j in zip(old, new, strict=True) if i != j
        }
        extra = set(x) ^ set(y)
        keep[n] = bool(touched & (set(x) | set(y))) and (bool(extra) or sorted(x) == sorted(y))
    return keep


@torch.no_grad()
def forced(system: Any, ledes: Tensor, rows: Tensor, headlines: Tensor) -> tuple[Tensor, GeneratorView]:
    """The generator's encoded ledes (B, I, G), and what it saw of the headlines (N, J) of these rows."""
    mask = ledes > 0
    begun = system.begin(ledes, mask.sum(1).cpu(), mask)
    begin = torch.full((len(headlines), 1), BEGIN, device=headlines.device)
    previous = torch.cat([begin, headlines], 1)
    state = map_tensors(begun.state, lambda leaf: leaf[rows])
    memory = Memory(*(one[rows] for one in begun.memory))
    states, attention = system.decoder.unroll(previous, state, memory)
    ended = functional.pad(headlines, (0, 1))
    ended = ended.scatter(1, (headlines > 0).sum(1, keepdim=True), END)
    logs = [
        functional.linear(some.to(torch.bfloat16 if some.is_cuda else some.dtype), weight, bias)
        .float()
        .log_softmax(-1)
        .gather(-1, word.unsqueeze(-1))
        .squeeze(-1)
        for weight, bias in [_output(system, states)]
        for some, word in zip(states.split(256), ended.split(256), strict=True)
    ]
    written = torch.cat(logs).masked_fill(ended == 0, 0.0)
    return begun.memory.states, GeneratorView(states, attention, written)


def _output(system: Any, states: Tensor) -> tuple[Tensor, Tensor]:
    dtype = torch.bfloat16 if states.is_cuda else states.dtype
    return system.output.weight.to(dtype), system.output.bias.to(dtype)


class Trainer:
    """All tasks in one step."""

    def __init__(self, shape: VerifierShape, device: torch.device, rate: float, dropout: float, system: Any = None, weights: Any = None) -> None:
        torch.manual_seed(1)
        self.model = Verifier(shape, dropout).to(device)
        self.system = system
        if weights:
            missing = self.model.load_state_dict(weights, strict=False)
            print("not in the old weights:", missing.missing_keys, flush=True)
        self.rate, self.device = rate, device
        self.optimizer = self._optimizer(rate)

    def _optimizer(self, rate: float) -> torch.optim.Optimizer:
        return torch.optim.AdamW(
            self.model.parameters(), lr=rate, betas=(0.9, 0.98), weight_decay=0.01, fused=self.device.type == "cuda"
        )

    def update(self, loss: Tensor, rate: float) -> None:
        for group in self.optimizer.param_groups:
            group["lr"] = rate
        self.optimizer.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.optimizer.step()

    def autocast(self) -> Any:
        return torch.autocast(self.device.type, torch.bfloat16, enabled=self.device.type == "cuda")

    def step(self, pairs: tuple[Tensor, Tensor], quads: tuple[Tensor, ...], share: float) -> Tensor:
        """One update; share is how far training is, from 0 to 1. Returns the losses (5,)."""
        with self.autocast():
            words = self.word_loss(*pairs)
            contrast, accuracy = self.contrast_loss(quads)
        self.update(words + contrast, self.rate * schedule(share))
        return torch.stack([words.detach(), contrast.detach(), accuracy])

    def word_loss(self, ledes: Tensor, headlines: Tensor) -> Tensor:
        """Predict each sub-word of publishers' headlines from the lede and the words before."""
        model = self.model
        begin = torch.full((len(headlines), 1), BEGIN, device=self.device)
        states = model(model.read(ledes), torch.cat([begin, headlines], 1), causal=True).states
        ended = functional.pad(headlines, (0, 1))
        ended = ended.scatter(1, (headlines > 0).sum(1, keepdim=True), END)
        counts = ended > 0
        logits = functional.linear(states[counts], model.embedding.weight)
        return functional.cross_entropy(logits.float(), ended[counts], label_smoothing=0.05)

    def judge(self, ledes: Tensor, rows: Tensor, headlines: Tensor) -> Judgement:
        """Judge the headlines of these rows of ledes."""
        with torch.autocast(self.device.type, enabled=False):
            encoded, view = forced(self.system, ledes, rows, headlines)
        return self.model(self.model.read(ledes, encoded).rows(rows), headlines, view)

    def contrast_loss(self, quads: tuple[Tensor, ...]) -> tuple[Tensor, Tensor]:
        """Say which lede a headline was generated from."""
        ledes_a, ledes_b, a, b = quads
        n = len(a)
        number = torch.arange(n, device=self.device)
        rows = torch.cat([number, number, n + number, n + number])
        four = self.judge(torch.cat([ledes_a, ledes_b]), rows, torch.cat([a, b, b, a]))
        scores = support_logit(four.labels)
        aa, ab, bb, ba = scores.split(n)
        contrast = functional.softplus(-torch.stack([aa - ab, aa - ba, bb - ba, bb - ab])).mean()
        right = torch.cat([torch.ones(n), torch.zeros(n), torch.ones(n), torch.zeros(n)]).to(self.device)
        alone = functional.binary_cross_entropy_with_logits(scores, right)
        accuracy = ((aa > ab).float() + (bb > ba).float()).mean().detach() / 2
        return contrast + alone, accuracy


def support_logit(labels: Tensor) -> Tensor:
    """The log-odds that a headline is ok or clumsy, not added or false. (N, 4) -> (N,)."""
    labels = labels.float()
    return labels[:, :2].logsumexp(1) - labels[:, 2:].logsumexp(1)


def schedule(share: float, warm: float = 0.03) -> float:
    """The factor of the learning rate: up, then down along a cosine."""
    if share < warm:
        return max(0.01, share / warm)
    return max(0.01, 0.5 * (1 + math.cos(math.pi * (share - warm) / (1 - warm))))


def batches(lengths: Tensor, size: int, generator: torch.Generator) -> list[Tensor]:
    """Rows in batches of similar length, in a random order."""
    order = torch.randperm(len(lengths), generator=generator)
    out: list[Tensor] = []
    for chunk in order.split(size * 50):
        ranked = chunk[lengths[chunk].argsort()]
        out += [one for one in ranked.split(size) if len(one) == size]
    return [out[n] for n in torch.randperm(len(out), generator=generator).tolist()]


def pretrain(shape: VerifierShape, data: dict[str, Tensor], device: torch.device, args: Any, seconds: float, rate: float, dropout: float, system: Any) -> Trainer:
    weights = load(args.start.parent, args.start.name)[1] if args.start else None
    trainer = Trainer(shape, device, rate, dropout, system, weights)
    generator = torch.Generator().manual_seed(1)
    start, number, sums = time.perf_counter(), 0, torch.zeros(3, device=device)
    lede_lengths = (data["ledes"] > 0).sum(1).cpu()
    quad_lengths = (data["a_ledes"] > 0).sum(1).cpu()
    pairs_left: list[Tensor] = []
    quads_left: list[Tensor] = []
    done = 0.0
    while done < 1:
        if not pairs_left:
            pairs_left = batches(lede_lengths, args.batch, generator)
        if not quads_left:
            quads_left = batches(quad_lengths, args.quads, generator)
        rows, quads = pairs_left.pop(), quads_left.pop()
        longest = int(lede_lengths[rows].max())
        pair = data["ledes"][rows.to(device)][:, :longest].long(), data["headlines"][rows.to(device)].long()
        quads = quads.to(device)
        four = tuple(data[name][quads].long() for name in ("a_ledes", "b_ledes", "a", "b"))
        width = min(LEDE, int(quad_lengths[quads.cpu()].max()) + 8)
        four = four[0][:, :width], four[1][:, :width], four[2], four[3]
        if args.steps:
            done = (number + 1) / args.steps
        elif number % 10 == 0:
            done = min(1.0, (time.perf_counter() - start) / seconds)
        sums += trainer.step(pair, four, min(done, 1.0))
        number += 1
        if number % args.show == 0:
            losses = (sums / args.show).tolist()
            print(f"{number} {time.perf_counter() - start:.0f}s", " ".join(f"{x:.4f}" for x in losses), flush=True)
            sums.zero_()
    print("steps", number, "seconds", round(time.perf_counter() - start, 1), flush=True)
    return trainer


def save(model: Verifier, folder: Path, name: str, parts: int) -> None:
    """Rows in int8 with a scale each, in some files of about equal size."""
    levels: dict[str, Any] = {}
    for key, value in model.state_dict().items():
        value = value.detach().float().cpu()
        if value.dim() == 2:
            scale = value.abs().amax(1, keepdim=True).clamp(min=1e-12) / 127
            levels[key] = ((value / scale).round().to(torch.int8), scale.half())
        else:
            levels[key] = value
    keys = sorted(levels, key=lambda key: -model.state_dict()[key].numel())
    for part in range(parts):
        some = {key: levels[key] for key in keys[part::parts]}
        torch.save({"shape": model.shape._asdict(), "levels": some}, folder / f"{name}{part}.pt")


def load(folder: Path, name: str) -> tuple[dict[str, int], dict[str, Tensor]]:
    """The shape and the weights of a saved verifier."""
    weights: dict[str, Tensor] = {}
    for path in sorted(folder.glob(f"{name}[0-9].pt")):
        saved = torch.load(path)
        for key, value in saved["levels"].items():
            weights[key] = value[0].float() * value[1].float() if isinstance(value, tuple) else value
    return saved["shape"], weights


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=Path, nargs="+", required=True)
    parser.add_argument("--limit", type=int, default=10**9)
    parser.add_argument("--changed", type=int, default=300_000, help="ledes to change")
    parser.add_argument("--beam", type=int, default=4)
    parser.add_argument("--search-batch", type=int, default=4096)
    parser.add_argument("--batch", type=int, default=1024)
    parser.add_argument("--steps", type=int, default=0)
    parser.add_argument("--show", type=int, default=200)
    parser.add_argument("--workers", type=int, default=14)
    parser.add_argument("--quads", type=int, default=256)
    parser.add_argument("--size", type=int, default=256)
    parser.add_argument("--layers", type=int, nargs=2, default=(4, 4))
    parser.add_argument("--rate", type=float, default=1e-3)
    parser.add_argument("--parts", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=300)
    parser.add_argument("--until", type=float, default=400, help="seconds from the start")
    parser.add_argument("--start", type=Path, help="weights to begin with: FOLDER/NAME")
    parser.add_argument("--dropout", type=float, default=0.1)
    parser.add_argument("--labels", type=Path)
    parser.add_argument("--tune-epochs", type=int, default=4)
    parser.add_argument("--tune-rate", type=float, nargs="+", default=[3e-4])
    parser.add_argument("--output", type=Path, required=True)
    args = parser.parse_args()
    start = time.perf_counter()
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    ledes, headlines = read_pairs(args.pairs, args.limit)
    print("pairs", len(ledes), f"{time.perf_counter() - start:.0f}s", flush=True)
    rows, changed, kinds = changed_ledes(ledes[: args.changed], args.workers)
    print("changed", len(rows), f"{time.perf_counter() - start:.0f}s", flush=True)
    headliner = Headliner.load(device="cuda" if device.type == "cuda" else "cpu")
    true = ledes[rows]
    a = generate(headliner, true, args.beam, args.search_batch)
    print("generated", f"{time.perf_counter() - start:.0f}s", flush=True)
    b = generate(headliner, changed, args.beam, args.search_batch)
    keep = useful(true, changed, a, b)
    counts = {k: [0, 0] for k in kinds}
    for kind, kept in zip(kinds, keep.tolist(), strict=True):
        counts[kind][0] += 1
        counts[kind][1] += kept
    print("useful", int(keep.sum()), counts, f"{time.perf_counter() - start:.0f}s", flush=True)
    tokenizer = headliner.models[0].tokenizer
    for n in np.flatnonzero(keep)[:12]:
        print(kinds[n], *(("\n   " + tokenizer.decode([i for i in x[n].tolist() if i])) for x in (true, a, b)))
    data = {
        name: torch.from_numpy(value).to(device)
        for name, value in dict(
            ledes=ledes, headlines=headlines, a_ledes=true[keep], b_ledes=changed[keep], a=a[keep], b=b[keep]
        ).items()
    }
    system = headliner.models[0].model.eval()
    del headliner
    vocabulary = tokenizer.vocabulary_size
    args.output.mkdir(parents=True, exist_ok=True)
    shape = VerifierShape(vocabulary, args.size, args.size // 64, 4 * args.size, *args.layers)
    seconds = min(args.seconds, args.until - (time.perf_counter() - start))
    trainer = pretrain(shape, data, device, args, seconds, args.rate, args.dropout, system)
    save(trainer.model, args.output, "pretrained", args.parts)
    if args.labels:
        from verifier_tune import tune

        tune(trainer, args, data)


if __name__ == "__main__":
    main()
