"""The loss of the headline: `l_trg`, Equations 4 and 5 of the paper."""

from typing import Final

from torch import Tensor, nn
from torch.nn import functional

from ledeline.model.gpu.dispatch import has_kernel
from ledeline.text.subwords import BOS, PAD

NEVER_WRITTEN: Final = [PAD, BOS]


@has_kernel
def token_losses(states: Tensor, output: nn.Linear, targets: Tensor) -> Tensor:
    """`-log o_j[y_j]` of each step. z (B, J, H), targets (B, J) -> (B, J).

    The output layer is W_o, b_o of `o_j = softmax(W_o z_j + b_o)`.
    """
    return logit_losses(output(states), targets)


def logit_losses(logits: Tensor, targets: Tensor) -> Tensor:
    """`-log o_j[y_j]` of each step. Logits (B, J, V), targets (B, J) -> (B, J)."""
    losses = functional.cross_entropy(logits.flatten(0, 1), targets.flatten(), reduction="none")
    return losses.view_as(targets)


@has_kernel
def smoothed_token_losses(
    states: Tensor, output: nn.Linear, targets: Tensor, smoothing: float
) -> tuple[Tensor, Tensor]:
    """The losses of each step with label smoothing, and without it. As `token_losses`, twice."""
    logits = output(states)
    losses = logit_losses(logits, targets)
    return smoothed(losses, logits, smoothing), losses


def smoothed(losses: Tensor, logits: Tensor, smoothing: float) -> Tensor:
    """The losses (B, J) with label smoothing (Szegedy et al. 2016). Logits (B, J, V) -> (B, J).

    A share of the target's probability is spread evenly over all types but those that no headline
    has, <pad> and <bos>.
    """
    logs = functional.log_softmax(logits, -1)
    of_all = logs.sum(-1) - logs[..., NEVER_WRITTEN].sum(-1)
    return (1 - smoothing) * losses - smoothing * of_all / (logits.shape[-1] - len(NEVER_WRITTEN))


def summed(losses: Tensor, mask: Tensor | None) -> Tensor:
    """The sum over a pair's own steps. (B, J) -> (B,)."""
    return (losses if mask is None else losses * mask).sum(1)
