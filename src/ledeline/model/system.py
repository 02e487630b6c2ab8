"""The contract of a system: what training, search and analysis ask of it.

A system is one file in `systems/`, with its configuration in it. Training calls `losses`, search
calls `encode` and `step`, analysis calls `trace`. `docs/architecture.md` says how to add one.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from ledeline.config.recipe import Recipe
from ledeline.data.dataset import Batch, Ids
from ledeline.model.format.int8 import Layout
from ledeline.model.layers.dropout import BatchRandom, Share
from ledeline.model.pairs import Pairs

if TYPE_CHECKING:
    from ledeline.model.system_config import SystemConfig


@dataclass(frozen=True)
class Losses:
    """What a batch costs, pair by pair. All (B,)."""

    named: dict[str, Tensor]  # l_trg is "target"; each add-on's loss has the add-on's loss_name
    headline: Tensor  # l_trg of the headline and <eos> alone: what systems are compared by

    def total(self) -> Tensor:
        """What training minimises, for each pair: the sum of all."""
        return torch.stack(list(self.named.values())).sum(0)


class Trace(NamedTuple):
    """Known headlines as a system sees them, step by step."""

    log_probabilities: Tensor  # (B, J): log o_j[y_j]
    attention: Tensor | None  # (B, J, I): alpha_j; None for a system without attention
    source_predictions: Tensor | None  # (B, J, V): q_j of the SPM; None without it
    states: Tensor | None = None  # (B, J, H): z_j, where the system has it


class System(nn.Module, ABC):
    """Sources in, headlines out.

    A subclass names its configuration in `Config` and builds its layers in `__init__`;
    `ledeline.model.build.build` then gives every parameter its first value. Dropout layers are
    those of `ledeline.model.layers.dropout`, so that any number of processes train alike.
    """

    Config: ClassVar[Any]  # a section with the key `name`; its defaults are the published setting
    recipe: ClassVar[Recipe] = Recipe()  # how it was trained where it was published
    capturable: ClassVar[bool] = False  # may a training step be captured as a CUDA graph
    max_captured_tokens: ClassVar[int | None] = None  # larger steps keep a GPU busy without a graph
    learns_words: ClassVar[bool] = False  # may a step learn single words, see `Pairs.positions`
    refuses: ClassVar[Mapping[str, str]] = {}  # add-ons that do not go with it, and why
    label_smoothing: float | None = None  # in training, as the run sets it; None: it has none

    def __init__(self, config: "SystemConfig", vocabulary: int) -> None:
        super().__init__()
        self.config, self.vocabulary = config, vocabulary

    @property
    def num_parameters(self) -> int:
        """How many weights it has."""
        return sum(one.numel() for one in self.parameters())

    # --- training -----------------------------------------------------------------------------

    @abstractmethod
    def losses(self, pairs: Pairs) -> Losses:
        """The losses of each pair; their sum is minimised."""

    def forward(self, pairs: Pairs) -> Losses:
        """As `losses`, which DistributedDataParallel calls by this name."""
        return self.losses(pairs)

    @property
    def loss_names(self) -> tuple[str, ...]:
        """The names of its losses, "target" first."""
        return ("target",)

    def num_steps(self, source_lengths: Ids, headline_lengths: Ids) -> Ids:  # noqa: ARG002
        """Decoder steps for pairs of these lengths: headline and <eos>. (B,), (B,) -> (B,)."""
        return headline_lengths + 1

    def pairs(self, batch: Batch) -> Pairs:
        """A batch as this system learns it, on its device.

        The width is that of the whole batch, also where this process has a share of it, so that
        the dropout masks are the same.
        """
        steps = self.num_steps(batch.source_lengths, batch.headline_lengths)
        widest = [np.array([side.shape[1]]) for side in (batch.sources, batch.headlines)]
        return Pairs.of(batch, steps, int(self.num_steps(*widest)[0]), self.device)

    def start_epoch(self) -> None:
        """Change the weights before the first step of an epoch, where the published system did."""

    # --- search: one step after another -------------------------------------------------------

    @abstractmethod
    def encode(
        self, sources: Tensor, lengths: Tensor | None = None, mask: Tensor | None = None
    ) -> tuple[Any, Any]:
        """Sources (B, I) -> the state before the first step, with K = 1, and the memory.

        Lengths (B,) and mask (B, I) are given where the sources are not all of one length. State
        and memory are (named) tuples of tensors; those of the state begin with (B, K), those of the
        memory with (B).
        """

    @abstractmethod
    def step(self, words: Tensor, state: Any, memory: Any) -> tuple[Tensor, Any]:
        """y_{j-1} (B, K) -> `log o_j` (B, K, V), and the state after the step."""

    @property
    def context_size(self) -> int | None:
        """On how many of the last words a step depends; None: on all of them."""
        return None

    @property
    def rescores(self) -> bool:
        """Whether it ranks the hypotheses of a search once more, by `rescore`."""
        return False

    def rescore(self, pairs: Pairs) -> Tensor:
        """What is added to the mean log-probability of each headline to rank it. (B,)."""
        return torch.zeros(len(pairs.sources), device=self.device)

    # --- analysis -----------------------------------------------------------------------------

    @abstractmethod
    def trace(self, pairs: Pairs) -> Trace:
        """Teacher-force known headlines, and say what was seen at each step."""

    def int8_layouts(self) -> dict[str, Layout]:
        """By the name of a weight, how it is cut into rows where it is stored in int8."""
        return {}

    # --- all of it ----------------------------------------------------------------------------

    @property
    def device(self) -> torch.device:
        """Where its weights are."""
        return next(self.parameters()).device

    @property
    def has_attention(self) -> bool:
        """Whether its traces have attention, by which headlines are explained."""
        return True

    @property
    def has_source_predictions(self) -> bool:
        """Whether its traces have source predictions, as those of the SPM."""
        return False

    def share_batches(self, share: Share) -> None:
        """Tell its layers with random numbers which pairs of the batch this process has."""
        for module in self.modules():
            if isinstance(module, BatchRandom):
                module.share = share
