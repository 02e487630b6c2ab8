"""The first values of a system's parameters: `[init] name = "..."` picks a scheme.

Each parameter has a random generator of its own, seeded by the seed and the parameter's name. So
parameters that two systems share start alike, and a new parameter changes no other.
"""

from collections.abc import Mapping
from typing import Annotated, Final, Literal, Protocol, runtime_checkable
from zlib import crc32

import torch
from torch import Tensor, nn

from ledeline.config.section import above, section
from ledeline.core.shuffle import random_keys


class Initialization(Protocol):
    """A scheme for matrices, and for tensors with more than two dimensions."""

    @property
    def name(self) -> str:
        """What it is called in configurations."""

    def fill_(self, weight: Tensor, generator: torch.Generator) -> None:
        """Fill a tensor of two dimensions or more with its first values."""


@section
class UniformInit:
    """Uniform between two bounds, as in the paper."""

    name: Annotated[Literal["uniform"], "Uniform between -bound and bound."] = "uniform"
    bound: Annotated[float, "Weights start between -bound and bound.", above(0)] = 0.1

    def fill_(self, weight: Tensor, generator: torch.Generator) -> None:
        """Fill a tensor of two dimensions or more."""
        nn.init.uniform_(weight, -self.bound, self.bound, generator=generator)


@section
class XavierInit:
    """With a deviation by the number of inputs and outputs (Glorot and Bengio 2010)."""

    name: Annotated[
        Literal["xavier"], "Standard deviation gain * sqrt(2 / (inputs + outputs))."
    ] = "xavier"
    gain: Annotated[float, "Factor of the deviation.", above(0)] = 1.0
    distribution: Annotated[
        Literal["uniform", "normal"],
        "Uniform within gain * sqrt(6 / (inputs + outputs)) of 0, or normal with mean 0.",
    ] = "uniform"

    def fill_(self, weight: Tensor, generator: torch.Generator) -> None:
        """Fill a tensor of two dimensions or more."""
        fill = nn.init.xavier_normal_ if self.distribution == "normal" else nn.init.xavier_uniform_
        fill(weight, self.gain, generator=generator)


@section
class NormalInit:
    """Normal with mean 0."""

    name: Annotated[Literal["normal"], "Normal with mean 0."] = "normal"
    std: Annotated[float, "Standard deviation.", above(0)] = 0.02

    def fill_(self, weight: Tensor, generator: torch.Generator) -> None:
        """Fill a tensor of two dimensions or more."""
        nn.init.normal_(weight, 0.0, self.std, generator=generator)


INITIALIZATIONS: Final[Mapping[str, type]] = {
    "uniform": UniformInit,
    "xavier": XavierInit,
    "normal": NormalInit,
}


@runtime_checkable
class HasInitialize(Protocol):
    """A module that sets first values of its own."""

    def initialize_(self, generator: torch.Generator) -> None:
        """Change what `initialize` has set; draw random numbers from the generator only."""


_NORMALIZATIONS: Final = (
    nn.LayerNorm,
    nn.GroupNorm,
    nn.RMSNorm,
    nn.BatchNorm1d,
    nn.BatchNorm2d,
)


@torch.no_grad()
def initialize(module: nn.Module, seed: int, scheme: Initialization) -> None:
    """Fill all parameters of a module.

    - Two dimensions or more: by the scheme.
    - One dimension: 0, as for biases; but the gains of normalisation layers are 1, and so is the
      bias of the forget gates of torch's LSTMs.
    - Then each module with a method `initialize_(generator)`, see `HasInitialize`, may change its
      parameters; sub-modules come before the module that contains them. Each gets a generator of
      its own, too.
    """
    for name, parameter in module.named_parameters():
        path, _, own_name = name.rpartition(".")
        if parameter.dim() > 1:
            scheme.fill_(parameter, _generator(seed, name))
        else:
            _fill_vector(parameter, module.get_submodule(path), own_name)
    for name, owner in reversed(list(module.named_modules())):
        if isinstance(owner, HasInitialize):
            owner.initialize_(_generator(seed, name))


def _generator(seed: int, name: str) -> torch.Generator:
    """A random generator for a name."""
    return torch.Generator().manual_seed(int(random_keys(seed, crc32(name.encode()), 1)[0]))


def _fill_vector(vector: Tensor, owner: nn.Module, name: str) -> None:
    is_gain = isinstance(owner, _NORMALIZATIONS) and name == "weight"
    nn.init.constant_(vector, 1.0 if is_gain else 0.0)
    if isinstance(owner, nn.LSTM) and name.startswith("bias_ih"):  # torch adds bias_hh to it
        open_forget_gates(vector)


def open_forget_gates(bias: Tensor) -> None:
    """Set the forget gates' part of an LSTM's bias to 1. Gates: input, forget, candidate, output.

    So a cell keeps what it holds until it has learned otherwise (Jozefowicz et al. 2015).
    """
    nn.init.ones_(bias.chunk(4)[1])
