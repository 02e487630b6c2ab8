"""Fine-tune the verifier on headlines that readers labelled.

Labels and words that readers called wrong are learned together; of two headlines of one lede the
better one must get more support. Some of the pre-training goes on beside it, so that little is
forgotten.
"""

import copy
import json
import time
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from verifier_train import Trainer, batches, save, schedule

VALUE = torch.tensor([1.0, 0.6, 0.2, 0.0])  # what a label is worth when headlines are compared


def read_labelled(path: Any, device: torch.device) -> dict[str, Any]:
    """The arrays that `verifier_labels` wrote."""
    arrays = np.load(path)
    out: dict[str, Any] = {name: torch.from_numpy(arrays[name]).to(device) for name in arrays.files}
    return out


def auroc(scores: np.ndarray, positive: np.ndarray) -> float:
    """The share of pairs of a positive and a negative in which the positive has the higher score."""
    order = np.argsort(scores, kind="stable")
    ranks = np.empty(len(scores))
    ranks[order] = np.arange(1, len(scores) + 1)
    n = positive.sum()
    return float((ranks[positive].sum() - n * (n + 1) / 2) / max(1, n * (len(scores) - n)))


def predict(trainer: Trainer, data: dict[str, Any], rows: Tensor) -> np.ndarray:
    """Probabilities of the labels, (N, 4)."""
    model = trainer.model.eval()
    out = []
    with torch.no_grad(), trainer.autocast():
        for some in rows.split(512):
            ledes, headlines = data["ledes"][some].long(), data["headlines"][some].long()
            judged = trainer.judge(ledes, torch.arange(len(ledes), device=ledes.device), headlines)
            out.append(judged.labels.float().softmax(-1).cpu())
    model.train()
    return torch.cat(out).numpy()


def measure(trainer: Trainer, data: dict[str, Any]) -> str:
    """AUROC of false and of ok on the held-out parts, and how often the better of two is seen."""
    parts = []
    for number in (1, 2):
        rows = (data["part"] == number).nonzero().squeeze(1)
        found, labels = predict(trainer, data, rows), data["labels"][rows].cpu().numpy()
        text = f"false {auroc(found[:, 3], labels == 3):.4f} ok {auroc(found[:, 0], labels == 0):.4f}"
        groups = data["group"][rows].cpu().numpy()
        right = total = 0
        for group in np.unique(groups):
            some = np.flatnonzero(groups == group)
            for i in some:
                for j in some:
                    if labels[i] == 3 and labels[j] < 2:
                        total += 1
                        right += found[i, 3] > found[j, 3]
        parts.append(text + (f" better of two {right / total:.4f}" if total else ""))
    return " | ".join(parts)


def label_loss(trainer: Trainer, data: dict[str, Any], rows: Tensor) -> Tensor:
    """The loss of some labelled headlines; rows of one lede follow each other."""
    ledes = data["ledes"][rows].long()
    ledes = ledes[:, : int((ledes > 0).sum(1).max())]
    headlines, labels = data["headlines"][rows].long(), data["labels"][rows].long()
    headlines = headlines[:, : int((headlines > 0).sum(1).max())]
    judged = trainer.judge(ledes, torch.arange(len(ledes), device=ledes.device), headlines)
    loss = functional.cross_entropy(judged.labels.float(), labels, label_smoothing=0.05)
    wrong = data["wrong"][rows][:, : headlines.shape[1]].float()
    counts = (headlines > 0) & data["has_words"][rows].unsqueeze(1)
    doubts = functional.binary_cross_entropy_with_logits(judged.doubts.float()[counts], wrong[counts])
    kinds = data["kinds"][rows].long()
    named = functional.cross_entropy(judged.kinds.float(), kinds, ignore_index=-1)
    values = VALUE.to(labels.device)[labels]
    expected = judged.labels.float().log_softmax(-1)
    score = expected[:, :2].logsumexp(1) - expected[:, 3]
    group = data["group"][rows]
    better = (group[:, None] == group[None]) & (values[:, None] > values[None] + 0.3)
    ranked = functional.softplus(-(score[:, None] - score[None]))[better]
    return loss + 0.5 * doubts + 0.1 * named.nan_to_num() + (0.5 * ranked.mean() if len(ranked) else 0.0)


def tune(trainer: Trainer, args: Any, pretraining: dict[str, Tensor]) -> None:
    """Fine-tune with each learning rate; the best on the held-out labels is saved."""
    device = trainer.device
    data = read_labelled(args.labels, device)
    start = copy.deepcopy(trainer.model.state_dict())
    train = (data["part"] == 0).nonzero().squeeze(1).cpu()
    groups = data["group"].cpu()[train]
    lengths = (pretraining["ledes"] > 0).sum(1).cpu()
    quad_lengths = (pretraining["a_ledes"] > 0).sum(1).cpu()
    print("labelled", len(train), "before:", measure(trainer, data), flush=True)
    best = -1.0
    for rate in args.tune_rate:
        trainer.model.load_state_dict(start)
        trainer.optimizer = trainer._optimizer(rate)
        generator, clock = torch.Generator().manual_seed(1), time.perf_counter()
        ledes = groups.unique()
        by_group = {int(one): train[groups == one] for one in ledes}
        total = args.tune_epochs * (len(ledes) // 64)
        number = 0
        words: list[Tensor] = []
        quads: list[Tensor] = []
        for epoch in range(args.tune_epochs):
            order = ledes[torch.randperm(len(ledes), generator=generator)]
            losses = []
            for some in order.split(64):
                if len(some) < 64:
                    continue
                rows = torch.cat([by_group[int(one)] for one in some]).to(device)
                words = words or batches(lengths, 256, generator)
                quads = quads or batches(quad_lengths, 64, generator)
                pair, four = words.pop().to(device), quads.pop().to(device)
                with trainer.autocast():
                    loss = label_loss(trainer, data, rows)
                    other = trainer.word_loss(
                        pretraining["ledes"][pair].long(), pretraining["headlines"][pair].long()
                    )
                    contrast, _ = trainer.contrast_loss(
                        tuple(pretraining[name][four].long() for name in ("a_ledes", "b_ledes", "a", "b"))
                    )
                number += 1
                trainer.update(loss + 0.2 * other + 0.2 * contrast, rate * schedule(number / total, 0.1))
                losses.append(loss.detach())
            result = measure(trainer, data)
            print(
                f"rate {rate} epoch {epoch} loss {torch.stack(losses).mean():.4f} {result}"
                f" {time.perf_counter() - clock:.0f}s",
                flush=True,
            )
            found = float(result.split()[1])
            if found > best:
                best = found
                save(trainer.model, args.output, "tuned", args.parts)
                supports = predict(trainer, data, torch.arange(len(data["part"])))
                np.savez_compressed(args.output / "predictions.npz", labels=supports.astype(np.float16))
    print("best", best, json.dumps(vars(args), default=str), flush=True)
