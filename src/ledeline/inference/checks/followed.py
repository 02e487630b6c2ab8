"""What the generator makes of known headlines, for the verifier."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from ledeline.core.steps import Steps
from ledeline.data.dataset import padded
from ledeline.model.verifier import PairView
from ledeline.runtime.engine import Engine
from ledeline.search import Hypothesis
from ledeline.text.subwords import BOS, EOS, PAD


class AskedIds(NamedTuple):
    """A lede and some headlines, in ids."""

    source: Sequence[int]
    headlines: Sequence[Sequence[int]]

    @property
    def can_be_checked(self) -> bool:
        """Whether the lede and a headline have words."""
        return bool(self.source) and any(self.headlines)


def follow(generator: Engine, asked: Sequence[AskedIds]) -> Steps[list[PairView]]:
    """Have the generator write known headlines of some ledes."""
    sources, lengths = padded([source for source, _ in asked])
    number = max(len(headlines) for _, headlines in asked)
    width = max(len(one) for _, headlines in asked for one in headlines)
    targets = np.zeros((len(asked), number, width + 1), np.int64)
    for row, (_, headlines) in enumerate(asked):
        for slot, one in enumerate(headlines):
            targets[row, slot, : len(one) + 1] = *one, EOS
    words = torch.from_numpy(targets)
    previous = torch.cat([torch.full_like(words[..., :1], BOS), words[..., :-1]], -1)
    previous.masked_fill_(previous == EOS, PAD)
    inputs = torch.from_numpy(sources), torch.from_numpy(lengths)
    seen = yield from generator.follow(*inputs, previous, words)
    views = []
    for row, (source, headlines) in enumerate(asked):
        some, longest = slice(len(headlines)), max(map(len, headlines), default=0)
        views.append(
            PairView(
                inputs[0][row, : len(source)],
                seen.values[row, : len(source)],
                previous[row, some, 1 : longest + 1],
                seen.states[row, some, : longest + 1],
                seen.logs[row, some, : longest + 1],
            )
        )
    return views


def searched_view(
    source: Sequence[int], found: Sequence[Hypothesis], seen: tuple[Tensor, Tensor]
) -> PairView:
    """The same from a search that kept its states; `seen` is that of `BeamSearch.seen`."""
    values, states = seen
    number, steps = states.shape[:2]
    headlines, logs = torch.full((number, steps), PAD), torch.zeros(number, steps)
    for n, one in enumerate(found):
        ids, written = one.ids[:steps], one.path.logs[:steps] if one.path is not None else ()
        headlines[n, : len(ids)] = torch.tensor(ids)
        logs[n, : len(written)] = torch.tensor(written)
    width = min(steps, max(len(one.ids) for one in found))
    if steps == width:  # the longest was cut off before <eos>
        states, logs = functional.pad(states, (0, 0, 0, 1)), functional.pad(logs, (0, 1))
    some = slice(width + 1)
    return PairView(
        torch.tensor(source),
        values[: len(source)],
        headlines[:, :width],
        states[:, some],
        logs[:, some],
    )
