"""What search asks of a model, and several models as one."""

import math
from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeVar, runtime_checkable

import torch
from torch import Tensor

S = TypeVar("S")
M = TypeVar("M")


class StepModel(Protocol[S, M]):
    """What search needs of a model.

    A state is tensors in tuples, however deep, that begin with (B, K), a memory such that begin
    with (B). What is no tensor there stays as it is.
    """

    @property
    def device(self) -> torch.device:
        """Where its tensors are."""

    def encode(
        self, sources: Tensor, lengths: Tensor | None, mask: Tensor | None, /
    ) -> tuple[S, M]:
        """Sources (B, I) -> the state before the first step, with K = 1, and what stays."""

    def step(self, words: Tensor, state: S, memory: M, /) -> tuple[Tensor, S]:
        """The words before (B, K) -> log-probabilities (B, K, V), and the state after."""


@runtime_checkable
class Scorer(Protocol):
    """A step model that can leave the softmax to search, which does it while it selects."""

    @property
    def bias(self) -> Tensor:
        """What is to be added to the scores of each type, (V,)."""

    def score(self, words: Tensor, state: Any, memory: Any, /) -> tuple[Tensor, Any]:
        """As `step`, but scores: `log o_j = log-softmax(scores + bias)`."""


def mapped(tree: Any, change: Callable[[Tensor], Tensor]) -> Any:
    """A state or a memory with each of its tensors changed."""
    if isinstance(tree, Tensor):
        return change(tree)
    if not isinstance(tree, tuple):
        return tree
    leaves = [mapped(leaf, change) for leaf in tree]
    return type(tree)(*leaves) if hasattr(tree, "_fields") else tuple(leaves)


def cost_type(tree: Any) -> torch.dtype:
    """The widest floating type in a state, float32 at least: costs are summed in it."""
    if isinstance(tree, tuple):
        kinds = {cost_type(leaf) for leaf in tree}
        return torch.float64 if torch.float64 in kinds else torch.float32
    return torch.float64 if getattr(tree, "dtype", None) == torch.float64 else torch.float32


class Ensemble:
    """Models that share a vocabulary, as one: the mean of their probabilities."""

    def __init__(self, models: Sequence[StepModel[Any, Any]]) -> None:
        if not models:
            raise ValueError("an ensemble needs a model")
        self._models = tuple(models)

    @property
    def device(self) -> torch.device:
        """Where the tensors of all of them are."""
        return self._models[0].device

    def encode(
        self, sources: Tensor, lengths: Tensor | None, mask: Tensor | None
    ) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        """The states of all, the memories of all."""
        encoded = [model.encode(sources, lengths, mask) for model in self._models]
        return tuple(state for state, _ in encoded), tuple(memory for _, memory in encoded)

    def step(
        self, words: Tensor, state: tuple[Any, ...], memory: tuple[Any, ...]
    ) -> tuple[Tensor, tuple[Any, ...]]:
        """The log of the mean probabilities, the states after."""
        steps = [
            model.step(words, *each)
            for model, *each in zip(self._models, state, memory, strict=True)
        ]
        logs = torch.stack([log for log, _ in steps]).logsumexp(0)
        return logs - math.log(len(steps)), tuple(each for _, each in steps)
