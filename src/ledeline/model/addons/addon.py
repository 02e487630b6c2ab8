"""The contract of an add-on: something more for any system with attention over encoder states."""

from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple, Self

from torch import Tensor, nn

from ledeline.core.errors import ModelError
from ledeline.data.dataset import Ids
from ledeline.model.layers.encoder import Encoded
from ledeline.model.pairs import Pairs


@dataclass(frozen=True)
class Sizes:
    """What an add-on may need to know of the system it is added to."""

    vocabulary: int  # V
    embedding: int  # D
    hidden: int  # H, of z_j
    own_states: int | None = None  # of h_i and of the sentence, where it is not H
    own_keys: int | None = None  # of a key of attention, where it is not that of h_i
    own_queries: int | None = None  # of what attention asks with, where it is not H

    @property
    def states(self) -> int:
        """Of the encoder's states h_i, and of the sentence vector."""
        return self.hidden if self.own_states is None else self.own_states

    @property
    def keys(self) -> int:
        """Of the keys of attention."""
        return self.states if self.own_keys is None else self.own_keys

    @property
    def queries(self) -> int:
        """Of what attention asks with."""
        return self.hidden if self.own_queries is None else self.own_queries


class AttentionStep(NamedTuple):
    """A step of attention, for an add-on that follows it."""

    queries: Tensor  # (B, K, size of a query)
    weights: Tensor  # alpha_j: (B, K, I)
    values: Tensor  # what attention mixes: (B, I, size of h_i)


@dataclass(frozen=True)
class View:
    """What an add-on sees of decoder steps.

    In a loss these are all J steps of each pair, (B, J, ...). In `Addon.scores` it is one step:
    of all K hypotheses of a search, (B, K, ...), and in training of the known headline, K = 1.
    """

    states: Tensor  # z_j: (B, J or K, H), in a loss after the output's dropout
    detached_attention: Tensor  # alpha_j: (B, J or K, I); to look at, not to train through
    words: Tensor  # y_{j-1}: (B, J or K)
    sources: Tensor  # (B, I)
    source_mask: Tensor | None  # (B, I)
    has_attention_gradient: bool = True
    encoded: Encoded | None = None  # as the encoder made it, in a loss; None in `Addon.scores`
    values: Tensor | None = None  # what attention mixes: (B, I, size of h_i)
    embedding: Tensor | None = None  # E_t: (V, D)
    source_embedding: Tensor | None = None  # E_s: (V, D), in a loss, if the encoder has it

    @property
    def attention(self) -> Tensor:
        """alpha_j, to train through; refused where no gradient would come back."""
        if not self.has_attention_gradient:
            raise ModelError(
                "an add-on trains through the attention, which has no gradient here; set "
                "needs_attention_gradient = True in its class, or look at detached_attention"
            )
        return self.detached_attention

    def step(self, j: int) -> Self:
        """One step of all, as `Addon.scores` sees it."""
        one = slice(j, j + 1)
        return replace(
            self,
            states=self.states[:, one],
            detached_attention=self.detached_attention[:, one],
            words=self.words[:, one],
            encoded=None,
        )


class Addon(nn.Module):
    """Does nothing; a subclass overrides the methods of the places where it acts.

    `Config` is its section of the configuration; `Config.title` is its name in titles, such as
    SPM in "EncDec+SPM". `ledeline.model.addons.ADDONS` has the name of its section.
    """

    Config: ClassVar[Any]
    needs_attention_gradient: ClassVar[bool] = False  # its loss trains through alpha_j
    capturable: ClassVar[bool] = False  # may a training step with it be captured as a CUDA graph
    loss_name: str | None = None  # what its loss is called in reports; None: it has none

    def encoded(self, encoded: Encoded) -> Encoded:
        """Change the encoder's states before attention sees them, as sGate does."""
        return encoded

    def begin(self, encoded: Encoded, sources: Tensor, mask: Tensor | None) -> Any:  # noqa: ARG002
        """State of its own before the first step, such as coverage; None: none.

        A tensor (B, 1, ...), or a tuple of them; in a search each hypothesis has its own, (B, K,
        ...).
        """
        return None

    def attention_keys(self, extra: Any) -> Tensor:
        """What is added to the keys of attention at the next step. (B, K, I, size of a key)."""
        raise NotImplementedError

    def attention_scores(self, extra: Any, queries: Tensor) -> Tensor:
        """What that adds to scores that are products `q . key`. (B, K, ...) -> (B, K, I).

        For an add-on that can say it without making the keys.
        """
        return (queries.unsqueeze(2) * self.attention_keys(extra)).sum(-1)

    def attended(self, extra: Any, step: AttentionStep) -> Any:  # noqa: ARG002
        """Its own state after attention has looked, for an add-on with `attention_keys`."""
        return extra

    def scores(
        self,
        scores: Tensor,
        view: View,  # noqa: ARG002
        extra: Any,
    ) -> tuple[Tensor, Any]:
        """Change the logits of a step, (B, K, V), and its own state, in training and search."""
        return scores, extra

    def search_scores(
        self,
        logs: Tensor,
        view: View,  # noqa: ARG002
        extra: Any,
    ) -> tuple[Tensor, Any]:
        """Change the log-probabilities of a step, (B, K, V), and its own state.

        In search and traces only, not in training; they need not sum to 1 after it. None may rise.
        """
        return logs, extra

    def num_steps(self, source_lengths: Ids, headline_lengths: Ids) -> Ids:  # noqa: ARG002
        """Decoder steps that it needs for each pair; longer sides never need fewer. (B,)."""
        return headline_lengths + 1

    def loss(self, view: View, pairs: Pairs) -> Tensor:
        """Its loss of each pair, (B,), for an add-on with a `loss_name`."""
        raise NotImplementedError(f"{type(self).__name__} has a loss_name and no loss")

    @property
    def rescores(self) -> bool:
        """Whether it ranks the hypotheses of a search once more."""
        return self.overrides("rescore")

    def rescore(self, view: View, pairs: Pairs) -> Tensor:
        """What is added to the mean log-probability of each headline to rank it. (B,).

        The best hypotheses of a search are ranked once more by it.
        """
        raise NotImplementedError

    def source_predictions(self, states: Tensor) -> Tensor | None:  # noqa: ARG002
        """Which source type is predicted at each step: z (B, J, H) -> q (B, J, V), as the SPM."""
        return None

    @classmethod
    def overrides(cls, method: str) -> bool:
        """Whether the add-on acts at a place: whether it has a method of its own for it."""
        return getattr(cls, method) is not getattr(Addon, method)

    @classmethod
    def changes_decoding(cls) -> bool:
        """Whether headlines come out otherwise with it; an engine must know it, or refuse it."""
        places = ("encoded", "begin", "attention_keys", "scores", "search_scores")
        return any(map(cls.overrides, places))
