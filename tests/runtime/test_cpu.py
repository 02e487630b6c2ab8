"""What a processor lacks is known, and can be tried on one that has it."""

import subprocess
import sys

import pytest
import torch

from ledeline.core.errors import ConfigError, ModelError
from ledeline.runtime import cpu, kernels
from ledeline.runtime.engine import Engine
from ledeline.runtime.linear import Int8Linear


@pytest.mark.parametrize(("wanted", "place"), [("", 3), ("portable", 0), ("avx2", 1), ("vnni", 3)])
def test_the_switch(monkeypatch, wanted, place):
    monkeypatch.setenv(cpu.VARIABLE, wanted)
    assert cpu.limit() == place


def test_a_kind_that_is_none_is_named(monkeypatch):
    monkeypatch.setenv(cpu.VARIABLE, "sse9")
    with pytest.raises(ConfigError, match=r"LEDELINE_CPU=sse9 .* portable, avx2, avx512, vnni"):
        cpu.limit()


def test_the_command_says_so_in_a_sentence(monkeypatch):
    command = [sys.executable, "-m", "ledeline", "generate", "Rain fell in Oslo."]
    monkeypatch.setenv(cpu.VARIABLE, "sse9")
    shown = subprocess.run(command, capture_output=True, text=True)
    assert shown.returncode == 2
    assert shown.stderr.startswith("ledeline: LEDELINE_CPU=sse9")
    assert len(shown.stderr.splitlines()) == 1


@pytest.mark.parametrize("wanted", ["portable", "avx2", "avx512"])
def test_without_vnni_there_is_no_int8(monkeypatch, wanted):
    monkeypatch.setenv(cpu.VARIABLE, wanted)
    assert not cpu.has_int8.__wrapped__()


def test_sums_that_are_cut_are_no_int8(monkeypatch):
    monkeypatch.setattr(cpu, "_adds_up_exactly", lambda: False)
    assert not cpu.has_int8.__wrapped__()


@pytest.mark.skipif(not cpu.has_int8(), reason="needs a CPU with VNNI")
def test_onednns_sums_are_as_exact_as_is_said():
    """On a CPU without VNNI they are cut at 16 bits, which is why int8 is refused there."""
    assert cpu._adds_up_exactly()
    product, values = Int8Linear(torch.ones(16, 64)), torch.ones(2, 64)
    assert torch.allclose(product(product.quantize(values)), torch.tensor(64.0), rtol=1e-5)


def test_an_engine_by_hand_refuses_int8(monkeypatch, make):
    """It used to write with sums that were off by 2, without a word."""
    monkeypatch.setattr(cpu, "has_int8", lambda: False)
    model = make("EncDec").float()
    Engine(model, "float32")
    with pytest.raises(ModelError, match=r"int8 needs a CPU with AVX-512 VNNI .* use float32"):
        Engine(model, "int8")


def test_our_loops_keep_to_the_switch():
    if kernels.library is None:
        pytest.skip("pip found no C compiler")
    best = kernels.library.ledeline_limit(cpu.limit())
    try:
        assert kernels.library.ledeline_limit(0) == 0
        assert not kernels.has_lstm(48)
        assert kernels.library.ledeline_limit(len(cpu.KINDS)) >= best
    finally:
        assert kernels.library.ledeline_limit(cpu.limit()) == best


def test_bfloat16_is_there_if_an_lstm_of_it_runs():
    lstm, inputs = torch.nn.LSTM(8, 8, bidirectional=True), torch.zeros(3, 2, 8)
    with torch.autocast("cpu", torch.bfloat16):
        if cpu.has_bfloat16():
            assert lstm(inputs)[0].dtype == torch.bfloat16
        else:
            with pytest.raises(RuntimeError):
                lstm(inputs)
