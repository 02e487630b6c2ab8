"""Models, searches and odd weights for tests of the engine in C, as its extension has them."""

import zlib
from functools import cache
from typing import Any

import numpy as np
import pytest
import torch

from ledeline.config import SearchConfig
from ledeline.model.build import build
from ledeline.model.format.weights import as_float32, as_stored
from ledeline.model.system import System
from ledeline.text.subwords import EOS
from systems import encdec

_runtime = pytest.importorskip("ledeline.runtime._runtime")


VOCABULARY, EMBEDDING, HIDDEN = 8052, 256, 512
TYPES = {torch.float32: "F32", torch.float16: "F16", torch.int8: "I8"}


@cache
def large_system(hidden: int = HIDDEN) -> System:
    """An EncDec with both add-ons, in the sizes of a real one, and with random weights.

    They are such that it is sure of some words, and that some headlines are short and others long.
    """
    config = encdec(sgate=True, spm=True, embedding_size=EMBEDDING, hidden_size=hidden, dropout=0.0)
    system = build(config, VOCABULARY, seed=1)
    generator = torch.Generator().manual_seed(1)
    weights = system.state_dict()
    for name, one in weights.items():
        spread = 0.1 if one.dim() == 1 else 1.5 / one.shape[-1] ** 0.5
        one.normal_(std=spread, generator=generator)
        if name.endswith("embedding.weight"):
            one.mul_(20.0)
    weights["output.weight"].mul_(20.0)
    weights["output.bias"][EOS] = 12.0
    stored = as_stored(weights, "int8", system.int8_layouts())
    system.load_state_dict(as_float32(stored, "int8", system.int8_layouts()))
    return system.eval()


@cache
def _large_tensors(hidden: int) -> dict[str, Any]:
    system = large_system(hidden)
    stored = as_stored(system.state_dict(), "int8", system.int8_layouts())
    return {
        name: (TYPES[one.dtype], tuple(one.shape), memoryview(one.numpy().tobytes()))
        for name, one in stored.items()
    }


def large_tensors(hidden: int = HIDDEN) -> dict[str, Any]:
    """Its tensors in int8, in a dictionary that may be changed."""
    return dict(_large_tensors(hidden))


def model(kind: str, *, int8: bool, **changes: Any) -> Any:
    """The engine's EncDec with these tensors, those of `large_system` if there are none."""
    sizes = {
        "vocabulary": VOCABULARY,
        "embedding": EMBEDDING,
        "hidden": HIDDEN,
        "layers": 2,
        "gate": True,
        "spm": True,
    }
    tensors = changes.pop("tensors", None) or large_tensors()
    return _runtime.Model(tensors, int8=int8, kind=kind, **sizes | changes)


def found(of: Any, sources: list[list[int]], config: SearchConfig) -> list[list[tuple[Any, ...]]]:
    running = begun(of, sources, config)
    while running.running:
        running.step()
    return running.hypotheses()


def begun(of: Any, sources: list[list[int]], config: SearchConfig, **more: Any) -> Any:
    asked = {name: getattr(config, name) for name in SearchConfig.__dataclass_fields__}
    asked["beam"] = config.beam_size
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
