"""Convolutions with gated linear units (Dauphin et al. 2017), as conv-s2s has them.

Legend: B pairs, T places, k kernel width, d hidden size.
"""

from torch import Tensor, nn
from torch.nn import functional

from ledeline.model.layers.weight_norm import WeightNormLinear


class GatedConvolution(nn.Module):
    """`[A B] = W [x_1; ...; x_k] + b`, `y = A * sigmoid(B)`, of windows of k places.

    W (2d, k d) is weight-normalised; its columns belong to the first place of a window, then to the
    second, and so on. A gate of about 1/2 takes away three quarters of the variance, so W starts
    with four times that of other layers, and less where its inputs are dropped.
    """

    def __init__(self, size: int, kernel: int, dropout_rate: float) -> None:
        super().__init__()
        self.kernel = kernel
        self.linear = WeightNormLinear(kernel * size, 2 * size, 4 * (1 - dropout_rate))

    def forward(self, windows: Tensor) -> Tensor:
        """Windows (B, T, k, d) -> (B, T, d)."""
        return functional.glu(self.linear(windows.flatten(2)), -1)


def windows_of(values: Tensor, kernel: int) -> Tensor:
    """Every k neighbours. (B, T + k - 1, d) -> (B, T, k, d)."""
    return values.unfold(1, kernel, 1).transpose(2, 3)


def centred_windows(values: Tensor, kernel: int) -> Tensor:
    """The window around each place, with zeros beyond both ends. (B, T, d) -> (B, T, k, d)."""
    side = (kernel - 1) // 2
    return windows_of(functional.pad(values, (0, 0, side, side)), kernel)
