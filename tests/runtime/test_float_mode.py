"""The same bits, whatever other libraries did to the thread's floating-point mode."""

import ctypes
import ctypes.util
import platform
import struct
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from ledeline.config import SearchConfig
from ledeline.core.shipped import SHIPPED
from ledeline.runtime.engine import Engine, EnginePrecision
from ledeline.runtime.tensor_file import read_tensors
from native_models import found, large_tensors, model
from pages import ROOT

_runtime = pytest.importorskip("ledeline.runtime._runtime")
sys.path.append(str(ROOT / "bench"))
import golden  # noqa: E402

UPWARD = {"x86_64": 0x800, "aarch64": 0x400000}.get(platform.machine())
JUDGED = int(golden.verifier_parts().shape["generator_size"])  # that of states it was trained on
SOURCE, HEADLINE = [5, 6, 7, 8, 300, 9], [7, 300, 11]


def round_upward() -> tuple[Callable[[], object], Callable[[], bool]]:
    name = ctypes.util.find_library("m")
    if UPWARD is None or name is None:
        pytest.skip("how to round upward is not known here")
    library, tiny = ctypes.CDLL(name), 1e-30
    assert library.fesetround(UPWARD) == 0
    return lambda: library.fesetround(0), lambda: 1.0 + tiny > 1.0


def flush_to_zero() -> tuple[Callable[[], object], Callable[[], bool]]:
    tiny = 5e-324
    if not torch.set_flush_denormal(True):
        pytest.skip("this processor does not flush to zero")
    return lambda: torch.set_flush_denormal(False), lambda: tiny * 1.0 == 0.0


def all_of(tensors: dict[str, Any], *, int8: bool) -> list[list[Any]]:
    """What an EncDec and the bundled model say, which are made for it."""
    kind = _runtime.kinds()[-1]
    encdec = model(kind, int8=int8, tensors=tensors, hidden=JUDGED)
    bundled = read_tensors(SHIPPED / "model.safetensors")
    precision: EnginePrecision = "int8" if int8 else "float32"
    transformer = Engine(golden.config(), golden.vocabulary(), bundled, precision, kind=kind)
    return [said_by(of, kind, int8=int8) for of in (encdec, transformer.native)]


def said_by(of: Any, kind: str, *, int8: bool) -> list[Any]:
    """What a search, an explanation and the verifier say, which is made for it."""
    following = _runtime.Follow(of, [SOURCE], [(0, HEADLINE)], True)
    while following.running:
        following.step()
    shape, judge = golden.verifier_parts()
    logs, states, attention, predictions = following.headline(0)
    verifier = _runtime.Verifier(judge, dict(shape), int8, kind)
    values = following.values(0)
    said = verifier.judge(SOURCE, values, [HEADLINE], states, logs)
    searched = found(of, [SOURCE], SearchConfig(beam=3, n_best=3, max_length=6))
    return [searched, logs, states, attention, predictions, values, said]


@pytest.mark.parametrize("int8", [True, False], ids=["int8", "float32"])
@pytest.mark.parametrize("change", [round_upward, flush_to_zero])
def test_bits_do_not_depend_on_the_mode_of_the_thread(change: Any, int8: bool) -> None:
    tensors = large_tensors(JUDGED)
    kind, shape, values = tensors["spm.output.bias"]
    size = len(values) // shape[0]
    large = struct.pack("f" if size == 4 else "e", 300.0) * 64  # other words get less than e^-87
    tensors["spm.output.bias"] = kind, shape, large + bytes(values)[64 * size :]
    expected = all_of(tensors, int8=int8)
    predictions = np.frombuffer(expected[0][4], np.float32)
    assert ((predictions > 0) & (predictions < np.finfo(np.float32).tiny)).any()
    undo, is_changed = change()
    try:
        own = all_of(tensors, int8=int8)
        kept = is_changed()
    finally:
        undo()
    assert own == expected
    assert kept
