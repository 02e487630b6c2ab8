"""Models, searches and odd weights for tests of the engine in C, as its extension has them."""

import json
import mmap
import struct
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ledeline.config import SearchConfig
from ledeline.core.shipped import SHIPPED

_runtime = pytest.importorskip("ledeline.runtime._runtime")


def read_tensors(path: Path) -> dict[str, Any]:
    """The tensors of a safetensors file, mapped into memory."""
    with path.open("rb") as file:
        view = memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
    (size,) = struct.unpack("<Q", view[:8])
    return {
        name: (one["dtype"], tuple(one["shape"]), view[8 + size :][slice(*one["data_offsets"])])
        for name, one in json.loads(bytes(view[8 : 8 + size])).items()
        if name != "__metadata__"
    }


def model(kind: str, *, int8: bool, **changes: Any) -> Any:
    sizes = {
        "vocabulary": 8052,
        "embedding": 256,
        "hidden": 512,
        "layers": 2,
        "gate": True,
        "spm": True,
    }
    tensors = changes.pop("tensors", None) or read_tensors(SHIPPED / "model.safetensors")
    return _runtime.Model(tensors, int8=int8, kind=kind, **sizes | changes)


def found(of: Any, sources: list[list[int]], config: SearchConfig) -> list[list[tuple[Any, ...]]]:
    running = begun(of, sources, config)
    while running.running:
        running.step()
    return running.hypotheses()


def begun(of: Any, sources: list[list[int]], config: SearchConfig, **more: Any) -> Any:
    asked = {name: getattr(config, name) for name in SearchConfig.__dataclass_fields__}
    asked["max_length"] = -1 if config.max_length is None else config.max_length
    for name in ("block_ngrams", "recombine"):
        asked[name] = asked[name] or 0
    more = {"keep_states": False, "max_states": -1, "forbidden": None} | more
    return _runtime.Search(of, sources, **asked, **more)


def extreme(shape: tuple[int, int], name: str) -> np.ndarray[Any, Any]:
    """Levels whose products are as large as they get, in all patterns of signs and places."""
    random = np.random.default_rng(zlib.crc32(name.encode()))
    levels = random.integers(-128, 128, shape)
    levels[::3] = random.choice([-128, 127], levels[::3].shape)
    levels[1::6], levels[4::6] = 127, -128
    levels[:, random.random(shape[1]) < 0.2] = 0
    return levels.astype(np.int8)


def extreme_tensors(v: int, d: int, h: int) -> dict[str, Any]:
    """The tensors of an EncDec of one layer, with scales that keep sums in the range of gates."""
    shapes = {"encoder.embedding.weight": (v, d, 1), "decoder.embedding.weight": (v, d, 1)}
    for side in ("", "_reverse"):
        shapes[f"encoder.layers.0.weight_ih_l0{side}"] = 4 * h, d, 1
        shapes[f"encoder.layers.0.weight_hh_l0{side}"] = 4 * h, h, 1
    shapes |= {"decoder.first.weight": (4 * h, d + 2 * h, 2), "output.weight": (v, h, 1)}
    shapes |= {
        "decoder.attention.bilinear": (h, h, 1),
        "decoder.attention.mix.weight": (h, 2 * h, 2),
    }
    made: dict[str, Any] = {}
    for name, (rows, cols, parts) in shapes.items():
        made[name] = "I8", (rows, cols), extreme((rows, cols), name).tobytes()
        of_scales = (1, cols) if name.endswith("bilinear") else (rows, parts)
        scales = np.full(of_scales, 1 / (127 * cols**0.5), np.float32)
        made[f"{name}.scale"] = "F32", of_scales, scales.tobytes()
    biases = [
        f"encoder.layers.0.bias_{one}_l0{side}" for one in ("ih", "hh") for side in ("", "_reverse")
    ]
    for name in (*biases, "decoder.first.bias", "output.bias"):
        size = v if name == "output.bias" else 4 * h
        made[name] = "F32", (size,), np.linspace(-1, 1, size, dtype=np.float32).tobytes()
    return made
