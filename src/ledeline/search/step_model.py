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

    State and memory are (nested) tuples of tensors. The first dimensions of a state's tensors are
    (B, K), the first of a memory's is (B). Other values in the tuples are passed on as they are.
    """

    @property
    def device(self) -> torch.device:
        """Where its tensors are."""

    def encode(
        self, sources: Tensor, lengths: Tensor | None, mask: Tensor | None, /
    ) -> tuple[S, M]:
        """Sources (B, I) -> the state before the first step, with K = 1, and the memory."""

    def step(self, words: Tensor, state: S, memory: M, /) -> tuple[Tensor, S]:
        """The last words (B, K) -> log-probabilities (B, K, V), and the state after the step."""


@runtime_checkable
class Scorer(Protocol):
    """A step model that can leave the softmax to search, which fuses it with selection."""

    @property
    def bias(self) -> Tensor:
        """To be added to the scores, (V,)."""

    def score(self, words: Tensor, state: Any, memory: Any, /) -> tuple[Tensor, Any]:
        """As `step`, but scores with `log o_j = log_softmax(scores + bias)`."""


@runtime_checkable
class FallingCosts(Protocol):
    """A step model with bonuses, so that the cost of a hypothesis can fall."""

    @property
    def bonuses(self) -> Any:
        """What is added to log-probabilities."""


def map_tensors(tree: Any, function: Callable[[Tensor], Tensor]) -> Any:
    """A state or memory with a function applied to each tensor."""
    if isinstance(tree, Tensor):
        return function(tree)
    if not isinstance(tree, tuple):
        return tree
    leaves = [map_tensors(leaf, function) for leaf in tree]
    return type(tree)(*leaves) if hasattr(tree, "_fields") else tuple(leaves)


def cost_dtype(tree: Any) -> torch.dtype:
    """float64 if a state has it, else float32: the type in which costs are summed."""
    if isinstance(tree, tuple):
        kinds = {cost_dtype(leaf) for leaf in tree}
        return torch.float64 if torch.float64 in kinds else torch.float32
    return torch.float64 if getattr(tree, "dtype", None) == torch.float64 else torch.float32


class Ensemble:
    """Several models with one vocabulary: the mean of their probabilities."""

    def __init__(self, models: Sequence[StepModel[Any, Any]]) -> None:
        if not models:
            raise ValueError("an ensemble needs a model")
        self._models = tuple(models)

    @property
    def device(self) -> torch.device:
        """Where the tensors of all models are."""
        return self._models[0].device

    def encode(
        self, sources: Tensor, lengths: Tensor | None, mask: Tensor | None
    ) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        """The states and the memories of all models."""
        encoded = [model.encode(sources, lengths, mask) for model in self._models]
        return tuple(state for state, _ in encoded), tuple(memory for _, memory in encoded)

    def step(
        self, words: Tensor, state: tuple[Any, ...], memory: tuple[Any, ...]
    ) -> tuple[Tensor, tuple[Any, ...]]:
        """The log of the mean probabilities, and the states after the step."""
        steps = [
            model.step(words, *each)
            for model, *each in zip(self._models, state, memory, strict=True)
        ]
        logs = torch.stack([log for log, _ in steps]).logsumexp(0)
        return logs - math.log(len(steps)), tuple(each for _, each in steps)
