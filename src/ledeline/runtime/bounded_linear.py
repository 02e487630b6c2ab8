"""Linear layers of a trained network in int8; inputs are cut off at a bound that was measured."""

from collections.abc import Mapping

from torch import Tensor, nn

from ledeline.runtime.linear import Int8Linear


class BoundedLinear(nn.Module):
    """A linear layer in int8. The bound does not depend on the input, so rows do not either."""

    def __init__(self, layer: nn.Linear, bound: float) -> None:
        super().__init__()
        self._layer, self._bound = Int8Linear(layer.weight, layer.bias), bound

    def forward(self, values: Tensor) -> Tensor:
        """(..., K) -> (..., M)."""
        cut = values.clamp(-self._bound, self._bound).contiguous()
        return self._layer(self._layer.quantize(cut, self._bound), self._bound)


def use_int8(network: nn.Module, bounds: Mapping[str, float]) -> None:
    """Replace the linear layers of these names."""
    for name, bound in bounds.items():
        parent, _, own = name.rpartition(".")
        layer = network.get_submodule(name)
        assert isinstance(layer, nn.Linear)
        setattr(network.get_submodule(parent), own, BoundedLinear(layer, bound))
