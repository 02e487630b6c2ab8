"""How parameters start: those of the paper's systems as ever, others by what they are."""

import math
from collections.abc import Callable
from zlib import crc32

import pytest
import torch
from torch import Tensor, nn

from ledeline.core.shuffle import random_keys
from ledeline.model.addons.sgate import SelectiveGateConfig
from ledeline.model.build import build
from ledeline.model.initialization import (
    INITIALIZATIONS,
    Initialization,
    NormalInit,
    UniformInit,
    XavierInit,
    initialize,
)
from ledeline.model.system_config import SystemConfig
from ledeline.model.systems.encdec import EncDec, EncDecConfig


class Norms(nn.Module):
    """A layer of each kind that has a gain, and others."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.LayerNorm(5)
        self.group = nn.GroupNorm(2, 6)
        self.square = nn.RMSNorm(5)
        self.batch = nn.BatchNorm1d(5)
        self.linear = nn.Linear(4, 5)
        self.lstm = nn.LSTM(3, 2, num_layers=2, bidirectional=True)
        self.gru = nn.GRU(3, 2)
        self.convolution = nn.Conv1d(3, 4, kernel_size=5)
        self.vector = nn.Parameter(torch.randn(7))


def by_the_rule_of_version_0_1_0(model: nn.Module, seed: int, bound: float, size: int) -> None:
    for name, parameter in model.named_parameters():
        numbers = torch.Generator().manual_seed(int(random_keys(seed, crc32(name.encode()), 1)[0]))
        if parameter.dim() > 1:
            nn.init.uniform_(parameter, -bound, bound, generator=numbers)
            continue
        nn.init.zeros_(parameter)
        is_lstm = name.startswith(("encoder.layers", "decoder.first", "decoder.upper"))
        if is_lstm and "bias_hh" not in name:
            nn.init.ones_(parameter.data[size : 2 * size])


def values(module: nn.Module) -> dict[str, Tensor]:
    return {name: one.detach().clone() for name, one in module.named_parameters()}


@pytest.mark.parametrize("layers", [1, 2, 3])
def test_the_papers_systems_start_as_in_version_0_1_0(
    make: Callable[..., EncDec], system: str, layers: int
) -> None:
    model = make(system, layers=layers, hidden=5).float()
    by_the_rule_of_version_0_1_0(model, 7, 0.3, 5)
    expected = values(model)
    make_different(model)
    initialize(model, 7, UniformInit(bound=0.3))
    for name, value in values(model).items():
        assert torch.equal(value, expected[name]), name


def make_different(model: nn.Module) -> None:
    for parameter in model.parameters():
        nn.init.constant_(parameter, 9.0)


def test_gains_start_at_1_and_biases_at_0() -> None:
    module = Norms()
    make_different(module)
    initialize(module, 1, UniformInit())
    for layer in (module.layer, module.group, module.square, module.batch):
        assert torch.equal(layer.weight, torch.ones_like(layer.weight))
    biases = [one for name, one in module.named_parameters() if name.endswith(".bias")]
    assert len(biases) == 5
    for vector in (*biases, module.vector, module.gru.bias_ih_l0):
        assert not vector.any()


def test_forget_gates_of_lstms_start_open() -> None:
    module = Norms()
    initialize(module, 1, UniformInit())
    for name, parameter in module.lstm.named_parameters():
        if name.startswith("bias_ih"):
            assert parameter.tolist() == [0, 0, 1, 1, 0, 0, 0, 0]
        elif name.startswith("bias_hh"):
            assert not parameter.any()


@pytest.mark.parametrize("scheme", [UniformInit(), XavierInit(), NormalInit()])
def test_a_parameter_starts_by_its_own_name(scheme: Initialization) -> None:
    """So others may come and go, and the seed makes a difference."""
    one = nn.ModuleDict({"a": nn.Linear(4, 5), "b": nn.Linear(4, 5)})
    other = nn.ModuleDict({"c": nn.Linear(7, 3), "b": nn.Linear(4, 5)})
    for module in (one, other):
        initialize(module, 3, scheme)
    ours = values(one)
    assert torch.equal(ours["b.weight"], values(other)["b.weight"])
    assert not torch.equal(ours["a.weight"], ours["b.weight"])
    initialize(one, 3, scheme)
    assert all(torch.equal(value, ours[name]) for name, value in values(one).items())
    initialize(one, 4, scheme)
    assert not torch.equal(values(one)["a.weight"], ours["a.weight"])


def test_a_tied_parameter_starts_by_its_first_name() -> None:
    tied = nn.Sequential(nn.Embedding(6, 4), nn.Linear(4, 6))
    tied[1].weight = tied[0].weight
    free = nn.Sequential(nn.Embedding(6, 4), nn.Linear(4, 6))
    for module in (tied, free):
        initialize(module, 3, UniformInit())
    assert torch.equal(tied[1].weight, free[0].weight)


class TestSchemes:
    """The bounds and moments that each promises, of 120,000 numbers."""

    def weight(self, scheme: Initialization, *shape: int) -> Tensor:
        module = nn.ParameterDict({"weight": torch.empty(shape)})
        initialize(module, 1, scheme)
        return module["weight"].detach()

    def test_uniform(self) -> None:
        weight = self.weight(UniformInit(bound=0.25), 300, 400)
        assert 0.2499 < float(weight.abs().max()) <= 0.25
        assert float(weight.std()) == pytest.approx(0.25 / math.sqrt(3), rel=0.01)
        assert abs(float(weight.mean())) < 0.002

    def test_xavier(self) -> None:
        weight, bound = self.weight(XavierInit(gain=2.0), 300, 400), 2 * math.sqrt(6 / 700)
        assert 0.999 * bound < float(weight.abs().max()) <= bound
        assert float(weight.std()) == pytest.approx(bound / math.sqrt(3), rel=0.01)

    def test_xavier_of_a_convolution_counts_its_width(self) -> None:
        weight = self.weight(XavierInit(), 100, 200, 6)
        bound = math.sqrt(6 / (6 * 300))
        assert 0.999 * bound < float(weight.abs().max()) <= bound

    def test_xavier_is_uniform_unless_it_is_told(self) -> None:
        weight, expected = torch.empty(30, 40), torch.empty(30, 40)
        XavierInit(gain=2.0).fill_(weight, torch.Generator().manual_seed(5))
        nn.init.xavier_uniform_(expected, 2.0, generator=torch.Generator().manual_seed(5))
        assert torch.equal(weight, expected)

    def test_normal_xavier(self) -> None:
        scheme = XavierInit(gain=math.sqrt(3), distribution="normal")
        weight, std = self.weight(scheme, 300, 400), math.sqrt(6 / 700)
        assert float(weight.std()) == pytest.approx(std, rel=0.01)
        assert abs(float(weight.mean())) < 0.01 * std
        assert float(weight.abs().max()) > 3.5 * std

    def test_normal(self) -> None:
        weight = self.weight(NormalInit(std=0.5), 300, 400)
        assert float(weight.std()) == pytest.approx(0.5, rel=0.01)
        assert float(weight.abs().max()) > 1.5

    def test_each_is_found_by_its_name(self) -> None:
        assert {name: kind().name for name, kind in INITIALIZATIONS.items()} == {
            name: name for name in ("uniform", "xavier", "normal")
        }


class Own(nn.Module):
    """Starts otherwise than others do."""

    def __init__(self) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.zeros(3))
        self.noise = nn.Parameter(torch.zeros(3))
        self.inner = nn.Linear(2, 2)

    def initialize_(self, generator: torch.Generator) -> None:
        nn.init.constant_(self.scale, 4.0)
        nn.init.uniform_(self.noise, generator=generator)
        nn.init.eye_(self.inner.weight)


class TestOwnStart:
    def test_a_module_has_the_last_word(self) -> None:
        module = nn.ModuleDict({"own": Own(), "other": Own(), "plain": nn.Linear(2, 3)})
        initialize(module, 1, UniformInit())
        own = module["own"]
        assert isinstance(own, Own)
        assert own.scale.tolist() == [4.0] * 3
        assert torch.equal(own.inner.weight, torch.eye(2))
        assert not own.inner.bias.any()
        assert float(own.noise.detach().min()) > 0
        assert float(module["plain"].weight.detach().abs().max()) <= 0.1

    def test_its_random_numbers_belong_to_its_name(self) -> None:
        module = nn.ModuleDict({"own": Own(), "other": Own()})
        initialize(module, 1, UniformInit())
        before = values(module)
        assert not torch.equal(before["own.noise"], before["other.noise"])
        alone = nn.ModuleDict({"own": Own()})
        initialize(alone, 1, UniformInit())
        assert torch.equal(values(alone)["own.noise"], before["own.noise"])

    def test_outer_modules_come_after_inner_ones(self) -> None:
        class Outer(Own):
            def __init__(self) -> None:
                super().__init__()
                self.within = Own()

            def initialize_(self, generator: torch.Generator) -> None:
                self.within.scale.fill_(5.0)

        module = Outer()
        initialize(module, 1, UniformInit())
        assert module.within.scale.tolist() == [5.0] * 3


def test_the_gate_starts_as_open_as_it_is_set() -> None:
    shut, wide = (
        build(SystemConfig.of(EncDecConfig(embedding_size=3, hidden_size=4), section), 11, 1)
        for section in (SelectiveGateConfig(), SelectiveGateConfig(initial_bias=2.0))
    )
    biases = values(wide).pop("gate.of_sentence.bias")
    assert (biases == 2).all()
    for name, one in values(shut).items():  # and nothing else is changed
        assert torch.equal(one, values(wide)[name]) == (name != "gate.of_sentence.bias")
