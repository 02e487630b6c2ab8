"""The contract of an add-on: something more for any system with attention over encoder states."""

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

from torch import Tensor, nn

from ledeline.core.errors import ModelError
from ledeline.data.dataset import Ids
from ledeline.model.layers.encoder import Encoded
from ledeline.model.pairs import Pairs


class Sizes(NamedTuple):
    """What an add-on may need to know of the system it is added to."""

    vocabulary: int  # V
    embedding: int  # D
    hidden: int  # H


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

    @property
    def attention(self) -> Tensor:
        """alpha_j, to train through; refused where no gradient would come back."""
        if not self.has_attention_gradient:
            raise ModelError(
                "an add-on trains through the attention, which has no gradient here; set "
                "needs_attention_gradient = True in its class, or look at detached_attention"
            )
        return self.detached_attention


class Addon(nn.Module):
    """Does nothing; a subclass overrides the methods of the places where it acts.

    `Config` is its section of the configuration; `Config.title` is its name in titles, such as
    SPM in "EncDec+SPM". `ledeline.model.addons.ADDONS` has the name of its section.
    """

    Config: ClassVar[Any]
    needs_attention_gradient: ClassVar[bool] = False  # its loss trains through alpha_j
    capturable: ClassVar[bool] = False  # may a training step with it be captured as a CUDA graph
    loss_name: ClassVar[str | None] = None  # what its loss is called in reports; None: it has none

    def encoded(self, encoded: Encoded) -> Encoded:
        """Change the encoder's states before attention sees them, as sGate does."""
        return encoded

    def begin(self, encoded: Encoded, sources: Tensor, mask: Tensor | None) -> Tensor | None:  # noqa: ARG002
        """State of its own before the first step, (B, 1, ...), such as coverage; None: none."""
        return None

    def scores(
        self,
        scores: Tensor,
        view: View,  # noqa: ARG002
        extra: Tensor | None,
    ) -> tuple[Tensor, Tensor | None]:
        """Change the logits of a step, (B, K, V), and its own state, (B, K, ...)."""
        return scores, extra

    def num_steps(self, source_lengths: Ids, headline_lengths: Ids) -> Ids:  # noqa: ARG002
        """Decoder steps that it needs for each pair; longer sides never need fewer. (B,)."""
        return headline_lengths + 1

    def loss(self, view: View, pairs: Pairs) -> Tensor:
        """Its loss of each pair, (B,), for an add-on with a `loss_name`."""
        raise NotImplementedError(f"{type(self).__name__} has a loss_name and no loss")

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
        return any(cls.overrides(method) for method in ("encoded", "begin", "scores"))
