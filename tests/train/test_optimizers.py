"""Optimizers against their published updates, and what is saved of them."""

from collections.abc import Iterator

import pytest
import torch
from torch import Tensor, nn

from ledeline.config.section import BadValue
from ledeline.train.optimizers import (
    OPTIMIZERS,
    AdadeltaConfig,
    AdagradConfig,
    AdamConfig,
    OptimizerConfig,
    SgdConfig,
    build_optimizer,
    optimizer_state,
    set_rate,
)

CPU = torch.device("cpu")
EVERY = [
    AdamConfig(),
    AdamConfig(beta1=0.8, beta2=0.99, epsilon=1e-3),
    AdagradConfig(),
    AdagradConfig(initial_sum=0.1, epsilon=1e-3),
    AdadeltaConfig(),
    AdadeltaConfig(rho=0.8, epsilon=1e-3),
    SgdConfig(),
    SgdConfig(momentum=0.9),
    SgdConfig(momentum=0.9, nesterov=True),
]
each = pytest.mark.parametrize("config", EVERY, ids=repr)


def gradients(num: int) -> list[Tensor]:
    numbers = torch.Generator().manual_seed(3)
    return [torch.randn(5, generator=numbers, dtype=torch.float64) for _ in range(num)]


def stepped(config: OptimizerConfig, rates: list[float]) -> Tensor:
    """A parameter that starts at 1, after a step for each rate."""
    module = nn.ParameterDict({"x": torch.ones(5, dtype=torch.float64)})
    optimizer = build_optimizer(config, module.parameters(), CPU)
    for rate, gradient in zip(rates, gradients(len(rates)), strict=True):
        set_rate(optimizer, rate)
        module["x"].grad = gradient.clone()
        optimizer.step()
    return module["x"].detach()


def by_hand(config: OptimizerConfig, rates: list[float]) -> Tensor:
    """The updates as the papers have them."""
    x = torch.ones(5, dtype=torch.float64)
    mean = square = total = velocity = moved = torch.zeros(5, dtype=torch.float64)
    for t, (rate, g) in enumerate(zip(rates, gradients(len(rates)), strict=True), start=1):
        match config:
            case AdamConfig():
                mean = config.beta1 * mean + (1 - config.beta1) * g
                square = config.beta2 * square + (1 - config.beta2) * g * g
                unbiased = mean / (1 - config.beta1**t), square / (1 - config.beta2**t)
                x = x - rate * unbiased[0] / (unbiased[1].sqrt() + config.epsilon)
            case AdagradConfig():
                total = total + g * g
                divisor = (config.initial_sum + total).sqrt() + config.epsilon
                x = x - rate * g / divisor
            case AdadeltaConfig():
                square = config.rho * square + (1 - config.rho) * g * g
                change = ((moved + config.epsilon) / (square + config.epsilon)).sqrt() * g
                moved = config.rho * moved + (1 - config.rho) * change * change
                x = x - rate * change
            case SgdConfig():
                velocity = config.momentum * velocity + g
                x = x - rate * (g + config.momentum * velocity if config.nesterov else velocity)
    return x


@each
def test_updates_are_the_published_ones(config: OptimizerConfig) -> None:
    rates = [0.1, 0.1, 0.05, 0.02, 0.02]
    torch.testing.assert_close(stepped(config, rates), by_hand(config, rates), rtol=1e-6, atol=1e-6)


def test_adam_is_bit_for_bit_what_it_was() -> None:
    """That of version 0.1.0: torch's, fused, and nothing told to it but the rate."""
    one, other = (nn.Linear(7, 5) for _ in range(2))
    other.load_state_dict(one.state_dict())
    ours = build_optimizer(AdamConfig(), one.parameters(), CPU)
    theirs = torch.optim.Adam(other.parameters(), fused=True)
    for number, rate in enumerate([0.001, 0.001, 0.0005]):
        for module, optimizer in ((one, ours), (other, theirs)):
            set_rate(optimizer, rate)
            module(torch.full((2, 7), 0.3 * number + 0.1)).square().sum().backward()
            optimizer.step()
            optimizer.zero_grad()
        assert torch.equal(one.weight, other.weight)
        assert torch.equal(one.bias, other.bias)
    for state, expected in zip(ours.state.values(), theirs.state.values(), strict=True):
        assert state.keys() == expected.keys()
        assert all(torch.equal(state[kind], expected[kind]) for kind in state)


@each
def test_state_is_there_before_the_first_step(config: OptimizerConfig) -> None:
    module = nn.Linear(3, 2)
    optimizer = build_optimizer(config, module.parameters(), CPU)
    state = optimizer_state(config, module, optimizer)
    kinds = {
        "adam": {"step", "exp_avg", "exp_avg_sq"},
        "adagrad": {"sum"},
        "adadelta": {"square_avg", "acc_delta"},
        "sgd": set(),
    }
    expected = kinds[config.name] | (
        {"momentum_buffer"} if getattr(config, "momentum", 0) else set()
    )
    assert state.keys() == {f"{name}.{kind}" for name in ("weight", "bias") for kind in expected}
    before = {name: one.clone() for name, one in state.items()}
    module(torch.ones(3)).sum().backward()
    optimizer.step()
    after = optimizer_state(config, module, optimizer)
    assert all(after[name] is one for name, one in state.items()), "a step makes no other tensors"
    assert not any(torch.equal(one, before[name]) for name, one in after.items())


@each
def test_a_parameter_without_a_gradient_stays_as_it_is(config: OptimizerConfig) -> None:
    module = nn.ModuleDict({"used": nn.Linear(2, 2), "idle": nn.Linear(2, 2)})
    optimizer = build_optimizer(config, module.parameters(), CPU)
    before = {name: one.detach().clone() for name, one in module.named_parameters()}
    state = {k: v.clone() for k, v in optimizer_state(config, module, optimizer).items()}
    module["used"](torch.ones(2)).sum().backward()
    optimizer.step()
    for name, one in module.named_parameters():
        assert torch.equal(one, before[name]) == name.startswith("idle")
    for name, one in optimizer_state(config, module, optimizer).items():
        assert torch.equal(one, state[name]) == name.startswith("idle")


def nesterov(rate: float, momentum: float, num_steps: int) -> Iterator[float]:
    """`x^2 / 2` from 1, by the update of conv-s2s.

    Its velocity contains the rate, and torch's does not; while the rate stays, that is the same.
    """
    x, v = 1.0, 0.0
    for _ in range(num_steps):
        x, v = x + momentum**2 * v - (1 + momentum) * rate * x, momentum * v - rate * x
        yield x


@pytest.mark.parametrize(
    ("rate", "momentum", "first"), [(0.1, 0.9, [0.81, 0.5751]), (0.25, 0.99, [0.5025])]
)
def test_nesterov_is_that_of_conv_s2s(rate: float, momentum: float, first: list[float]) -> None:
    x = nn.Parameter(torch.ones(1, dtype=torch.float64))
    config = SgdConfig(learning_rate=rate, momentum=momentum, nesterov=True)
    optimizer, found = config.build([x], rate), []
    for _ in range(5):
        optimizer.zero_grad()
        (x.square() / 2).sum().backward()
        optimizer.step()
        found.append(x.item())
    assert found == pytest.approx(list(nesterov(rate, momentum, 5)))
    assert found[: len(first)] == pytest.approx(first)


def test_nesterov_needs_momentum() -> None:
    with pytest.raises(BadValue, match=r"nesterov = true: needs optimizer\.momentum above 0"):
        SgdConfig(nesterov=True)


def test_each_is_found_by_its_name() -> None:
    assert {name: kind().name for name, kind in OPTIMIZERS.items()} == {
        name: name for name in ("adam", "adagrad", "adadelta", "sgd")
    }


# --- on a GPU -------------------------------------------------------------------------------------


@pytest.fixture
def stream() -> Iterator["torch.cuda.Stream"]:
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        yield stream


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
@each
def test_a_captured_step_is_a_step(config: OptimizerConfig, stream: "torch.cuda.Stream") -> None:
    """Also at rates that are set after the capture; the CPU says what is right."""
    assert config.capturable
    places = [CPU, torch.device("cuda")]
    inputs = [torch.linspace(-1, 1, 30).view(5, 6).to(place) for place in places]
    modules = [nn.Linear(6, 4).to(place) for place in places]
    modules[1].load_state_dict(modules[0].state_dict())
    optimizers = [
        build_optimizer(config, module.parameters(), place)
        for module, place in zip(modules, places, strict=True)
    ]

    def work(number: int) -> None:
        modules[number](inputs[number]).square().sum().backward()
        optimizers[number].step()
        optimizers[number].zero_grad()

    state = [*modules[1].parameters(), *optimizer_state(config, modules[1], optimizers[1]).values()]
    before = [one.detach().clone() for one in state]
    work(1)
    for tensor, value in zip(state, before, strict=True):
        tensor.data.copy_(value)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    graph.capture_begin()
    work(1)
    graph.capture_end()
    for rate in (0.1, 0.1, 0.03, 0.01):
        for optimizer in optimizers:
            set_rate(optimizer, rate)
        work(0)
        graph.replay()
    ours, theirs = ({n: p.detach().cpu() for n, p in m.named_parameters()} for m in modules)
    states = [
        {name: one.cpu() for name, one in optimizer_state(config, module, optimizer).items()}
        for module, optimizer in zip(modules, optimizers, strict=True)
    ]
    for one, other in ((ours, theirs), states):
        assert one.keys() == other.keys()
        for name, value in one.items():
            torch.testing.assert_close(value, other[name], rtol=1e-5, atol=1e-6)
