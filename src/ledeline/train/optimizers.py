"""Optimizers: `[optimizer] name = "..."` picks one.

Each section builds torch's optimizer and says what that remembers of each parameter, so that
checkpoints can hold it by name.
"""

from collections.abc import Iterable, Mapping
from typing import Annotated, ClassVar, Final, Literal, Protocol

import torch
from torch import Tensor, nn

from ledeline.config.section import BadValue, above, at_least, below, section

Rate = float | Tensor


class OptimizerConfig(Protocol):
    """What the section of an optimizer has."""

    capturable: ClassVar[bool]  # whether its step can be part of a CUDA graph

    @property
    def name(self) -> str:
        """What it is called in configurations and checkpoints."""

    @property
    def learning_rate(self) -> float:
        """The rate that a schedule starts from."""

    @property
    def state_kinds(self) -> tuple[str, ...]:
        """What it remembers of each parameter that later steps depend on."""

    def build(self, parameters: list[nn.Parameter], rate: Rate) -> torch.optim.Optimizer:
        """Torch's optimizer; the rate is a tensor on the device where steps may be captured."""

    def initial_state(self, parameter: nn.Parameter) -> dict[str, Tensor]:
        """What it remembers before the first step, by kind."""


@section
class AdamConfig:
    """Adam (Kingma and Ba 2015), as in the paper."""

    capturable: ClassVar[bool] = True
    state_kinds: ClassVar[tuple[str, ...]] = ("step", "exp_avg", "exp_avg_sq")

    name: Annotated[Literal["adam"], "Adam."] = "adam"
    learning_rate: Annotated[
        float, "Learning rate; the schedule multiplies it with a factor.", above(0)
    ] = 0.001
    beta1: Annotated[float, "Decay of the mean gradient.", at_least(0), below(1)] = 0.9
    beta2: Annotated[float, "Decay of the mean squared gradient.", at_least(0), below(1)] = 0.999
    epsilon: Annotated[float, "Added to the denominator.", above(0)] = 1e-8

    def build(self, parameters: list[nn.Parameter], rate: Rate) -> torch.optim.Optimizer:
        """Fused on every device."""
        return torch.optim.Adam(
            parameters,
            rate,
            (self.beta1, self.beta2),
            self.epsilon,
            fused=True,
            capturable=isinstance(rate, Tensor),
        )

    def initial_state(self, parameter: nn.Parameter) -> dict[str, Tensor]:
        """No steps, and both means 0."""
        return {
            "step": torch.zeros((), dtype=torch.float32, device=parameter.device),
            "exp_avg": torch.zeros_like(parameter),
            "exp_avg_sq": torch.zeros_like(parameter),
        }


@section
class AdagradConfig:
    """Adagrad (Duchi et al. 2011): each weight's rate falls with the sum of its squared gradients.

    Torch also counts steps, for a decay of the rate that is left to schedules here.
    """

    capturable: ClassVar[bool] = True
    state_kinds: ClassVar[tuple[str, ...]] = ("sum",)

    name: Annotated[Literal["adagrad"], "Adagrad."] = "adagrad"
    learning_rate: Annotated[
        float, "Learning rate; the schedule multiplies it with a factor.", above(0)
    ] = 0.01
    initial_sum: Annotated[float, "Initial sum of squared gradients.", at_least(0)] = 0.0
    epsilon: Annotated[float, "Added to the denominator.", above(0)] = 1e-10

    def build(self, parameters: list[nn.Parameter], rate: Rate) -> torch.optim.Optimizer:
        """Fused on a CPU; a GPU works on all parameters at once."""
        on_device = isinstance(rate, Tensor)
        return torch.optim.Adagrad(
            parameters,
            rate,
            initial_accumulator_value=self.initial_sum,
            eps=self.epsilon,
            foreach=on_device,
            fused=not on_device,
        )

    def initial_state(self, parameter: nn.Parameter) -> dict[str, Tensor]:
        """The sums that torch would make; it makes the count of steps itself."""
        return {"sum": torch.full_like(parameter, self.initial_sum)}


@section
class AdadeltaConfig:
    """Adadelta (Zeiler 2012): steps as large as those before them, for each weight its own.

    Torch also counts steps, which nothing depends on.
    """

    capturable: ClassVar[bool] = True
    state_kinds: ClassVar[tuple[str, ...]] = ("square_avg", "acc_delta")

    name: Annotated[Literal["adadelta"], "Adadelta."] = "adadelta"
    learning_rate: Annotated[
        float, "Learning rate; the schedule multiplies it with a factor.", above(0)
    ] = 1.0
    rho: Annotated[float, "Decay of both mean squares.", at_least(0), below(1)] = 0.95
    epsilon: Annotated[float, "Added to both mean squares.", above(0)] = 1e-6

    def build(self, parameters: list[nn.Parameter], rate: Rate) -> torch.optim.Optimizer:
        """A GPU works on all parameters at once; torch has no fused one."""
        on_device = isinstance(rate, Tensor)
        return torch.optim.Adadelta(
            parameters,
            rate,
            rho=self.rho,
            eps=self.epsilon,
            foreach=on_device,
            capturable=on_device,
        )

    def initial_state(self, parameter: nn.Parameter) -> dict[str, Tensor]:
        """No steps, and both mean squares 0."""
        return {
            "step": torch.zeros((), dtype=torch.float32, device=parameter.device),
            "square_avg": torch.zeros_like(parameter),
            "acc_delta": torch.zeros_like(parameter),
        }


@section
class SgdConfig:
    """Stochastic gradient descent: plain, with momentum, or with Nesterov momentum."""

    capturable: ClassVar[bool] = True

    name: Annotated[Literal["sgd"], "Stochastic gradient descent."] = "sgd"
    learning_rate: Annotated[
        float, "Learning rate; the schedule multiplies it with a factor.", above(0)
    ] = 0.1
    momentum: Annotated[float, "Momentum; 0: none.", at_least(0), below(1)] = 0.0
    nesterov: Annotated[bool, "Use Nesterov momentum; needs optimizer.momentum."] = False

    def __post_init__(self) -> None:
        if self.nesterov and not self.momentum:
            raise BadValue("nesterov", True, "needs optimizer.momentum above 0, such as 0.9")

    @property
    def state_kinds(self) -> tuple[str, ...]:
        """The momentum, where there is any."""
        return ("momentum_buffer",) if self.momentum else ()

    def build(self, parameters: list[nn.Parameter], rate: Rate) -> torch.optim.Optimizer:
        """Fused on every device."""
        return torch.optim.SGD(
            parameters, rate, momentum=self.momentum, nesterov=self.nesterov, fused=True
        )

    def initial_state(self, parameter: nn.Parameter) -> dict[str, Tensor]:
        """A momentum of 0, which makes the first step plain."""
        return {kind: torch.zeros_like(parameter) for kind in self.state_kinds}


OPTIMIZERS: Final[Mapping[str, type]] = {
    "adam": AdamConfig,
    "adagrad": AdagradConfig,
    "adadelta": AdadeltaConfig,
    "sgd": SgdConfig,
}


def build_optimizer(
    config: OptimizerConfig, parameters: Iterable[nn.Parameter], device: torch.device
) -> torch.optim.Optimizer:
    """An optimizer whose state is there before its first step.

    On a GPU the rate is a tensor there, so that `set_rate` reaches a step that was captured.
    """
    given = list(parameters)
    on_gpu = device.type != "cpu" and config.capturable
    rate = torch.zeros((), device=device) if on_gpu else config.learning_rate
    optimizer = config.build(given, rate)
    for parameter in given:
        optimizer.state[parameter].update(config.initial_state(parameter))
    return optimizer


def set_rate(optimizer: torch.optim.Optimizer, rate: float) -> None:
    """Set the learning rate of all parameters."""
    for group in optimizer.param_groups:
        if isinstance(group["lr"], Tensor):
            group["lr"].fill_(rate)
        else:
            group["lr"] = rate


# --- what an optimizer remembers, by name ---------------------------------------------------------


def optimizer_state(
    config: OptimizerConfig, model: nn.Module, optimizer: torch.optim.Optimizer
) -> dict[str, Tensor]:
    """Each tensor that later steps depend on, as `encoder.embedding.weight.exp_avg`.

    They are the optimizer's own: what is written into them is what its next step reads.
    """
    return {
        f"{name}.{kind}": optimizer.state[parameter][kind]
        for name, parameter in model.named_parameters()
        for kind in config.state_kinds
    }


@torch.no_grad()
def load_optimizer_state(
    state: Mapping[str, Tensor], saved: Mapping[str, Tensor], step: int
) -> None:
    """Copy saved tensors to those that `optimizer_state` gives.

    Version 0.1.0 did not save how many steps each parameter has had: there it was the run's number
    of steps for all.
    """
    for name, tensor in state.items():
        if name in saved or not name.endswith(".step"):
            tensor.copy_(saved[name])
        else:
            tensor.fill_(step)
