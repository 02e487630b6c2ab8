"""Search on ids: from a source to the headline a model thinks best; knows nothing of text.

Works on any model with `encode` and `step` (see `ledeline.model.seq2seq.Seq2Seq`).
"""

import numpy as np
import torch
from torch import Tensor

from ledeline.dataset import Ids
from ledeline.model.seq2seq import Seq2Seq
from ledeline.subword import BOS, EOS, PAD

STEPS_PER_SOURCE_TOKEN = 2  # the limit of decoder steps, <eos> counted


@torch.inference_mode()
def greedy(model: Seq2Seq, sources: Ids, lengths: Ids) -> list[list[int]]:
    """Write each headline with the likeliest token at every step.

    <pad> and <bos> are impossible, and so is an empty headline. A headline that has no end after
    2 I steps is cut there. Sources (B, I) with their lengths (B,) -> ids without <eos>.
    """
    device = model.output.weight.device
    equal = bool((lengths == sources.shape[1]).all())
    mask = torch.from_numpy(np.arange(sources.shape[1]) < lengths[:, None])
    state, memory = model.encode(
        torch.from_numpy(sources).to(device),
        None if equal else torch.from_numpy(lengths),
        None if equal else mask.to(device),
    )
    limits = torch.from_numpy(STEPS_PER_SOURCE_TOKEN * lengths).to(device)
    words = torch.full((len(sources), 1), BOS, device=device)
    written: list[Tensor] = []
    open_ = torch.ones(len(sources), dtype=torch.bool, device=device)
    while open_.any():
        scores, state = model.step(words, state, memory)  # (B, 1, V)
        scores[..., [PAD, BOS] if written else [PAD, BOS, EOS]] = float("-inf")
        words = scores.argmax(-1)  # (B, 1)
        written.append(words.squeeze(1))
        open_ &= (written[-1] != EOS) & (len(written) < limits)
    rows = torch.stack(written, 1).tolist() if written else [[] for _ in sources]
    return [_until_end(row[:limit]) for row, limit in zip(rows, limits.tolist(), strict=True)]


def _until_end(ids: list[int]) -> list[int]:
    return ids[: ids.index(EOS)] if EOS in ids else ids
