"""Weight normalisation (Salimans and Kingma 2016): the length of each row is learned apart."""

import math

import torch
from torch import Tensor, nn
from torch.nn import functional


class WeightNormLinear(nn.Module):
    """`W x + b`, where row r of W is `g_r v_r / ||v_r||`; v, g and b are learned.

    It starts as the plain layer of `v`, because `g_r = ||v_r||` at first: v is normal with the
    variance `variance / num_inputs`, so that inputs of variance 1 come out with `variance`; b is 0.
    """

    def __init__(self, num_inputs: int, num_outputs: int, variance: float = 1.0) -> None:
        super().__init__()
        self.in_features, self.out_features, self.variance = num_inputs, num_outputs, variance
        self.direction = nn.Parameter(torch.empty(num_outputs, num_inputs))  # v
        self.gain = nn.Parameter(torch.empty(num_outputs))  # g
        self.bias = nn.Parameter(torch.empty(num_outputs))  # b

    def initialize_(self, generator: torch.Generator) -> None:
        """Draw v, and let the layer be the plain one of v without a bias."""
        std = math.sqrt(self.variance / self.in_features)
        nn.init.normal_(self.direction, 0.0, std, generator=generator)
        self.gain.copy_(self._lengths())
        nn.init.zeros_(self.bias)

    @property
    def weight(self) -> Tensor:
        """W, from v and g. (num_outputs, num_inputs)."""
        return self.direction * (self.gain / self._lengths()).unsqueeze(1)

    def forward(self, values: Tensor) -> Tensor:
        """Values (..., num_inputs) -> (..., num_outputs)."""
        return functional.linear(values, self.weight, self.bias)

    def _lengths(self) -> Tensor:
        """`||v_r||` of each row. (num_outputs,)."""
        lengths: Tensor = torch.linalg.vector_norm(self.direction, dim=1)
        return lengths
