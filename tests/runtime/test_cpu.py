"""Which kinds of instructions the engine may use, and the switch that forces one."""

import subprocess
import sys

import pytest
import torch

from ledeline.core.errors import ConfigError
from ledeline.runtime import cpu


def test_a_kind_is_known_and_portable_always_there():
    own = cpu.kinds()
    assert own[0] == "portable"
    assert set(own) <= set(cpu.KINDS)
    assert len(set(own)) == len(own)


def test_without_the_switch_it_is_the_fastest(monkeypatch):
    monkeypatch.delenv(cpu.VARIABLE, raising=False)
    assert cpu.chosen_kind() == cpu.kinds()[-1]
    monkeypatch.setenv(cpu.VARIABLE, "")
    assert cpu.chosen_kind() == cpu.kinds()[-1]


@pytest.mark.parametrize("wanted", cpu.KINDS)
def test_the_switch(monkeypatch, wanted):
    monkeypatch.setenv(cpu.VARIABLE, wanted)
    if wanted in cpu.kinds():
        assert cpu.chosen_kind() == wanted
        return
    with pytest.raises(ConfigError, match=f"LEDELINE_CPU={wanted}: this CPU only has portable"):
        cpu.chosen_kind()


def test_a_kind_that_this_cpu_lacks_is_refused(monkeypatch):
    monkeypatch.setattr(cpu, "kinds", lambda: ("portable", "avx2"))
    monkeypatch.setenv(cpu.VARIABLE, "vnni")
    with pytest.raises(ConfigError, match=r"LEDELINE_CPU=vnni: this CPU only has portable, avx2$"):
        cpu.chosen_kind()
    monkeypatch.setenv(cpu.VARIABLE, "")
    assert cpu.chosen_kind() == "avx2"


def test_a_kind_that_is_none_is_named(monkeypatch):
    monkeypatch.setenv(cpu.VARIABLE, "sse9")
    known = ", ".join(cpu.KINDS)
    with pytest.raises(ConfigError, match=f"LEDELINE_CPU=sse9 is not a kind of CPU; .* {known}$"):
        cpu.chosen_kind()


def test_the_command_says_so_in_a_sentence(monkeypatch):
    command = [sys.executable, "-m", "ledeline", "generate", "Rain fell in Oslo."]
    monkeypatch.setenv(cpu.VARIABLE, "sse9")
    shown = subprocess.run(command, capture_output=True, text=True)
    assert shown.returncode == 2
    assert shown.stderr.startswith("ledeline: LEDELINE_CPU=sse9")
    assert len(shown.stderr.splitlines()) == 1


def test_bfloat16_is_there_if_an_lstm_of_it_runs():
    lstm, inputs = torch.nn.LSTM(8, 8, bidirectional=True), torch.zeros(3, 2, 8)
    with torch.autocast("cpu", torch.bfloat16):
        if cpu.has_bfloat16():
            assert lstm(inputs)[0].dtype == torch.bfloat16
        else:
            with pytest.raises(RuntimeError):
                lstm(inputs)
