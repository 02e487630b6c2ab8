"""Damaged and hostile model folders: each gets one sentence, or is a model that works.

    python bench/fuzz_model.py --seconds 300

Headers, offsets, shapes, types, lengths and bytes of `model.safetensors` are changed, and bytes
and values of `system.toml`, `model.json` and `verifier.json`. Anything but an error of ledeline's
own in one line is a finding: another exception, a crash, or a case that takes some seconds.
"""

import argparse
import copy
import faulthandler
import json
import os
import random
import re
import struct
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import golden
import quick
from ledeline.config import SearchConfig
from ledeline.config.engine_systems import EncDecConfig, EngineConfig, SelectiveGateConfig
from ledeline.config.engine_systems import SourcePredictionConfig as SpmConfig
from ledeline.config.section import Sections
from ledeline.config.toml import load
from ledeline.core.errors import LedelineError
from ledeline.core.shipped import SHIPPED
from ledeline.model.format.model_folder import RENAMED, read_description
from ledeline.runtime.engine import Engine
from ledeline.runtime.tensor_file import read_tensors
from ledeline.runtime.verifier_engine import VerifierEngine
from ledeline.search.engine_search import EngineSearch
from machine import described

VOCABULARY, D, H = 12, 5, 6
TOO_LONG: Final = 10.0  # seconds of a case
ODD: Final[tuple[Any, ...]] = (
    *(
        0,
        -1,
        1,
        2,
        3,
        5,
        7,
        16,
        127,
        2**14,
        2**14 + 1,
        2**16 + 1,
        2**31,
        2**32,
        2**40,
        2**63,
        2**64,
    ),
    *(
        10**30,
        -(2**63),
        1.5,
        1e308,
        True,
        False,
        None,
        "",
        "x",
        "F32",
        "F64",
        "I8",
        "BF16",
        "\ud800",
    ),
    *("\n", "a" * 300, [], {}, [[]], [1, 2], [2**62, 4], [0], [-1, -1], ["a"], {"a": 1}, [1] * 9),
)
System: Final = EngineConfig(
    system=EncDecConfig(embedding_size=D, hidden_size=H, layers=1),
    addons=Sections({"sgate": SelectiveGateConfig(), "spm": SpmConfig()}),
)
SHAPES: Final[dict[str, tuple[int, ...]]] = {
    "encoder.embedding.weight": (VOCABULARY, D),
    "decoder.embedding.weight": (VOCABULARY, D),
    **{f"encoder.layers.0.weight_ih_l0{end}": (4 * H, D) for end in ("", "_reverse")},
    **{f"encoder.layers.0.weight_hh_l0{end}": (4 * H, H) for end in ("", "_reverse")},
    **{f"encoder.layers.0.bias_ih_l0{end}": (4 * H,) for end in ("", "_reverse")},
    **{f"encoder.layers.0.bias_hh_l0{end}": (4 * H,) for end in ("", "_reverse")},
    "decoder.first.weight": (4 * H, D + 2 * H),
    "decoder.first.bias": (4 * H,),
    "decoder.attention.bilinear": (H, H),
    "decoder.attention.mix.weight": (H, 2 * H),
    "output.weight": (VOCABULARY, H),
    "output.bias": (VOCABULARY,),
    "spm.output.weight": (VOCABULARY, H),
    "spm.output.bias": (VOCABULARY,),
    "gate.of_state.weight": (H, H),
    "gate.of_sentence.weight": (H, H),
    "gate.of_sentence.bias": (H,),
}
PARTS: Final = {"decoder.first.weight": 2, "decoder.attention.mix.weight": 2}  # columns of scales


# --- seeds ----------------------------------------------------------------------------------------


def tiny_file(storage: str) -> bytes:
    """A small model, in a type of weights, as a file."""
    numbers, header, values = random.Random(1), {}, b""
    for name, shape in SHAPES.items():
        size = shape[0] * (shape[1] if len(shape) == 2 else 1)
        dtype = "F32" if storage == "I8" and len(shape) == 1 else storage
        if dtype == "I8":
            own = bytes(numbers.randrange(1, 256) for _ in range(size))
            scales = [1, H] if name.endswith("bilinear") else [shape[0], PARTS.get(name, 1)]
            count = scales[0] * scales[1]
            place = len(values)
            values += struct.pack(f"<{count}f", *[0.005] * count)
            offsets = [place, len(values)]
            header[f"{name}.scale"] = {"dtype": "F32", "shape": scales, "data_offsets": offsets}
        else:
            letter = {"F32": "f", "F16": "e"}[dtype]
            own = struct.pack(f"<{size}{letter}", *(numbers.uniform(-1, 1) for _ in range(size)))
        offsets = [len(values), len(values) + len(own)]
        header[name] = {"dtype": dtype, "shape": [*shape], "data_offsets": offsets}
        values += own
    return as_file(json.dumps(header).encode(), values)


def as_file(header: bytes, values: bytes) -> bytes:
    return struct.pack("<Q", len(header)) + header + values


def bundled_header() -> tuple[bytes, int]:
    """The header of the bundled model, and how long its values are."""
    path = SHIPPED / "model.safetensors"
    with path.open("rb") as file:
        (size,) = struct.unpack("<Q", file.read(8))
        return file.read(size), path.stat().st_size - 8 - size


# --- changes --------------------------------------------------------------------------------------


def flip(numbers: random.Random, data: bytes) -> bytes:
    """Change some bytes, take some away, or add some."""
    changed = bytearray(data)
    for _ in range(numbers.choice((1, 1, 2, 8))):
        place = numbers.randrange(len(changed) + 1)
        what = numbers.randrange(4)
        if what == 0 and place < len(changed):
            changed[place] ^= 1 << numbers.randrange(8)
        elif what == 1 and place < len(changed):
            changed[place] = numbers.randrange(256)
        elif what == 2:
            del changed[place : place + numbers.choice((1, 4, 40))]
        else:
            changed[place:place] = numbers.randbytes(numbers.choice((1, 8)))
    return bytes(
        changed[: numbers.randrange(len(changed) + 1)] if numbers.random() < 0.1 else changed
    )


def odd(numbers: random.Random) -> Any:
    """A value that hardly belongs there."""
    return copy.deepcopy(numbers.choice(ODD))


def change_table(numbers: random.Random, table: dict[str, Any]) -> None:
    """Change something in a table, or in a table or list in it."""
    if not table:
        return
    name = numbers.choice([*table])
    inner = table[name]
    if isinstance(inner, dict) and inner and numbers.random() < 0.8:
        change_table(numbers, inner)
    elif isinstance(inner, list) and inner and numbers.random() < 0.7:
        place = numbers.randrange(len(inner))
        near = inner[place] + numbers.choice((-4, -1, 1, 4)) if type(inner[place]) is int else 0
        inner[place] = near if numbers.random() < 0.5 else odd(numbers)
    elif numbers.random() < 0.2:
        del table[name]
    elif numbers.random() < 0.2:
        table[str(numbers.choice([*table, "a", "\n", "\ud800", "b" * 200]))] = copy.deepcopy(inner)
    else:
        table[name] = odd(numbers)


def change_file(numbers: random.Random, data: bytes) -> bytes:
    """A file of weights, damaged somewhere."""
    what = numbers.randrange(10)
    (size,) = struct.unpack_from("<Q", data)
    header, values = data[8 : 8 + size], data[8 + size :]
    if what < 5:
        table = json.loads(header)
        for _ in range(numbers.choice((1, 1, 2, 5))):
            change_table(numbers, table)
        return as_file(json.dumps(table).encode(), values)
    if what == 5:
        return as_file(flip(numbers, header), values)
    if what == 6:
        return (
            struct.pack("<Q", numbers.choice((0, 1, size - 1, size + 1, 2**24, 2**63, 2**64 - 1)))
            + data[8:]
        )
    if what == 7:
        special = struct.pack(
            "<f", numbers.choice((float("nan"), float("inf"), 3e38, -3e38, 1e-42))
        )
        place = numbers.randrange(0, len(values) - 4)
        return as_file(header, values[:place] + special + values[place + 4 :])
    return flip(numbers, data) if what == 8 else data[: numbers.randrange(len(data))]


# --- cases ----------------------------------------------------------------------------------------


class Fuzzer:
    """Seeds, and a folder for what is made of them."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.folder, self.numbers = folder, random.Random(seed)
        self.tiny = [tiny_file(storage) for storage in ("F32", "F16", "I8")]
        self.header, self.size = bundled_header()
        self.verifier = golden.verifier_parts()
        self.texts = {name: (SHIPPED / name).read_bytes() for name in ("system.toml", "model.json")}
        for large, small in ((b"256", D), (b"512", H), (b"layers = 2", b"layers = 1")):
            small = small if isinstance(small, bytes) else b"%d" % small
            self.texts["system.toml"] = self.texts["system.toml"].replace(large, small)
        self.kinds: list[tuple[str, int, Callable[[], str]]] = [
            ("tiny model", 80, self.try_tiny),
            ("header of the bundled model", 10, self.try_header),
            ("system.toml", 5, self.try_system),
            ("model.json", 5, self.try_description),
            ("verifier.json", 1, self.try_verifier),
        ]

    def try_tiny(self) -> str:
        """Read a small model, and write with it."""
        path = self.folder / "model.safetensors"
        path.write_bytes(change_file(self.numbers, self.numbers.choice(self.tiny)))
        precision = self.numbers.choice(("int8", "float32"))
        engine = Engine(System, VOCABULARY, read_tensors(path), precision, path=path)  # type: ignore[arg-type]
        running = EngineSearch([engine], [[5, 6, 7], [4]], SearchConfig(beam=3, max_length=4))
        while running.running:
            running.step()
        assert all(len(one.ids) <= 4 for found in running.hypotheses for one in found)
        return "works"

    def try_header(self) -> str:
        """Read the tensors that a large file's header has; its values are a hole in the file."""
        data, path = (
            change_file(self.numbers, as_file(self.header, bytes(64))),
            self.folder / "large",
        )
        path.write_bytes(data[: min(len(data), 8 + 2**20)])
        os.truncate(path, max(0, len(data) - 64) + self.size)
        read_tensors(path)
        return "works"

    def try_system(self) -> str:
        """Read the configuration, and make an engine of the sizes."""
        path = self.folder / "system.toml"
        text = self.texts["system.toml"]
        if self.numbers.random() < 0.6:
            wanted = str(self.numbers.choice([one for one in ODD if type(one) in (int, float)]))
            places = [one.span() for one in re.finditer(rb"[\d.]+|true", text)]
            start, stop = self.numbers.choice(places)
            text = text[:start] + wanted.encode() + text[stop:]
        path.write_bytes(text if self.numbers.random() < 0.3 else flip(self.numbers, text))
        config = load(EngineConfig, path, renamed=RENAMED, quiet=True)
        tensors = self.folder / "good"
        tensors.write_bytes(self.tiny[0])
        Engine(config, VOCABULARY, read_tensors(tensors), path=path)
        return "works"

    def try_description(self) -> str:
        """Read what describes a model."""
        text = self.texts["model.json"]
        if self.numbers.random() < 0.6:
            table = json.loads(text)
            change_table(self.numbers, table)
            text = json.dumps(table).encode()
        else:
            text = flip(self.numbers, text)
        (self.folder / "model.json").write_bytes(text)
        read_description(self.folder)
        return "works"

    def try_verifier(self) -> str:
        """Make a verifier of other sizes; its folder's reader lets only numbers pass."""
        shape = dict(self.verifier.shape)
        sizes = [one for one in ODD if type(one) is int]
        shape[self.numbers.choice([*shape])] = self.numbers.choice(sizes)
        VerifierEngine(shape, self.verifier.tensors)
        return "works"

    def cases(self) -> Iterator[tuple[str, str]]:
        """Kinds of files, and what became of a case, without an end."""
        weights = [weight for _, weight, _ in self.kinds]
        while True:
            ((kind, _, attempt),) = self.numbers.choices(self.kinds, weights)
            yield kind, outcome(attempt)


def outcome(attempt: Callable[[], str]) -> str:
    """What became of a case, in few words."""
    began = time.monotonic()
    try:
        said = attempt()
    except LedelineError as error:
        said = "a sentence" if is_sentence(str(error)) else f"FINDING: no sentence: {error!a:.200}"
    except Exception as error:  # a finding, whatever it is
        said = f"FINDING: {type(error).__name__}: {error!a:.200}"
    return said if time.monotonic() - began < TOO_LONG else f"FINDING: took too long: {said}"


def is_sentence(text: str) -> bool:
    """Whether a message is one line, not empty and not too long."""
    return 0 < len(text) < 2000 and len(text.splitlines()) == 1


def fuzz(seconds: float, cases: int, seed: int) -> Counter[tuple[str, str]]:
    """Try cases for some seconds, or so many; counts by kind of file and outcome."""
    counts: Counter[tuple[str, str]] = Counter()
    ended = time.monotonic() + seconds
    with tempfile.TemporaryDirectory() as folder:
        for number, found in enumerate(Fuzzer(Path(folder), seed).cases(), 1):
            counts[found] += 1
            if number >= cases or time.monotonic() > ended:
                break
    return counts


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=300)
    parser.add_argument("--cases", type=int, default=10**9)
    parser.add_argument("--seed", type=int, default=int.from_bytes(os.urandom(4), "little"))
    quick.offer(parser, seconds=20, cases=2000, seed=1)
    options = parser.parse_args()
    faulthandler.enable()
    counts = fuzz(options.seconds, options.cases, options.seed)
    print(f"{described()}\n\nseed {options.seed}, {sum(counts.values())} cases\n")
    print("| file | outcome | cases |\n| --- | --- | ---: |")
    for (kind, found), number in sorted(counts.items()):
        print(f"| {kind} | {found} | {number} |")
    return 1 if any(found.startswith("FINDING") for _, found in counts) else 0


if __name__ == "__main__":
    sys.exit(main())
