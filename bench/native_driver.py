"""The engine in C without Python: its driver is built here, and given models and questions.

The driver is tests/runtime/native/driver.c. The sources and the flags are those of the package, but
for what needs Python.
"""

import shutil
import struct
import subprocess
import tempfile
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Final, NamedTuple

ROOT: Final = Path(__file__).parents[1]
NATIVE: Final = ROOT / "src" / "ledeline" / "runtime" / "native"
DRIVER: Final = ROOT / "tests" / "runtime" / "native"
NEEDS_PYTHON: Final = ("module.c", "held_tensors.c", "types.c")  # and what ends in _type.c
STORED: Final = {"F32": 0, "F16": 1, "I8": 2}


class Sizes(NamedTuple):
    """The sizes of a model, in the order of a dump."""

    vocabulary: int
    embedding: int
    hidden: int
    layers: int
    gate: bool
    spm: bool
    is_transformer: bool = False
    encoder_layers: int = 0  # these of a Transformer
    heads: int = 0
    attention_layer: int = 0
    attention_head: int = 0


class Verifier(NamedTuple):
    """A verifier, as its folder has it."""

    shape: Mapping[str, int]
    tensors: Mapping[str, Any]


SHAPE: Final = ("vocabulary", "size", "heads", "layers", "embedding_size", "generator_size")


# --- building -------------------------------------------------------------------------------------


def engine_sources() -> list[Path]:
    """The files of the engine that need no Python."""
    return [
        path
        for path in sorted(NATIVE.glob("*.c"))
        if path.name not in NEEDS_PYTHON and not path.name.endswith("_type.c")
    ]


@cache
def flags() -> tuple[str, ...]:
    """The flags that the package is compiled with."""
    modules = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["setuptools"]
    (engine,) = [one for one in modules["ext-modules"] if one["name"].endswith("._runtime")]
    return tuple(engine["extra-compile-args"])


def build(
    compiler: str,
    to: Path,
    more: Sequence[str] = (),
    *,
    main: Iterable[str] = ("driver.c", "dump.c", "run.c"),
    without: Sequence[str] = (),
    engine: Sequence[Path] | None = None,
) -> Path:
    """Compile a program of the engine; `more` flags go last, and `without` names flags to drop.

    `engine` are its compiled files, if `compile_engine` made them before.
    """
    files = [*(engine or engine_sources()), *(DRIVER / name for name in main)]
    kept = [flag for flag in flags() if flag not in without]
    _compile([compiler, *kept, *more, *map(str, files), "-o", str(to), "-lm", "-lpthread"])
    return to


def compile_engine(compiler: str, folder: Path, more: Sequence[str] = ()) -> list[Path]:
    """Compile the engine alone, for several programs."""
    folder.mkdir()
    _compile([compiler, *flags(), *more, "-c", *map(str, engine_sources())], folder)
    return sorted(folder.glob("*.o"))


def _compile(command: list[str], folder: Path | None = None) -> None:
    asked = [*command, f"-I{NATIVE}"]
    done = subprocess.run(asked, capture_output=True, text=True, cwd=folder)
    if done.returncode:
        raise RuntimeError(f"{' '.join(asked)}\n{done.stderr}")


def missing(*programs: str) -> str | None:
    """Which of some programs are not installed, as a reason to skip, or None."""
    names = [name for name in programs if shutil.which(name) is None]
    return f"there is no {' and no '.join(names)} here" if names else None


def cannot_link(compiler: str, *more: str) -> str | None:
    """Why a compiler cannot make programs with these flags, or None."""
    if reason := missing(compiler):
        return reason
    with tempfile.TemporaryDirectory() as folder:
        command = [compiler, *more, "-x", "c", "-", "-o", str(Path(folder) / "empty")]
        text = "int main(void) { return 0; }"
        if "-fsanitize=fuzzer" in " ".join(more):
            text = "int LLVMFuzzerTestOneInput(const char *d, long s) { return d && s < 0; }"
        done = subprocess.run(command, input=text, capture_output=True, text=True)
    return f"{compiler} {' '.join(more)} does not work here" if done.returncode else None


# --- what it reads --------------------------------------------------------------------------------


def write_dump(
    path: Path,
    sizes: Sizes,
    tensors: Mapping[str, Any],
    sources: Sequence[Sequence[int]],
    verifier: Verifier | None = None,
) -> Path:
    """Write a model and sources for the driver; tensors are (dtype, shape, values)."""
    parts = [_numbers(*sizes), *_tensors(tensors), _numbers(verifier is not None)]
    if verifier:
        parts += [_numbers(*(verifier.shape[name] for name in SHAPE))]
        parts += _tensors(verifier.tensors)
    parts += [_numbers(len(sources)), *(_numbers(len(ids), *ids) for ids in sources)]
    path.write_bytes(b"".join(parts))
    return path


def _tensors(tensors: Mapping[str, Any]) -> list[bytes]:
    parts = [_numbers(len(tensors))]
    for name, (dtype, shape, values) in tensors.items():
        rows, cols = (1, *shape) if len(shape) == 1 else shape
        parts += [_text(name), _numbers(STORED[dtype], len(shape), rows, cols, len(values))]
        parts += [bytes(values)]
    return parts


def _text(text: str) -> bytes:
    ended = text.encode() + b"\0"
    return _numbers(len(ended)) + ended


def _numbers(*numbers: int) -> bytes:
    return struct.pack(f"<{len(numbers)}q", *numbers)


# --- what it says ---------------------------------------------------------------------------------


class Line(NamedTuple):
    """A headline, as the driver tells it."""

    source: int
    rank: int
    truncated: bool
    cost: float
    labels: str  # bits of four floats
    seen: str  # checksums
    ids: tuple[int, ...]


def run(
    driver: Sequence[str], dump: Path, *, env: Mapping[str, str] | None = None, **options: object
) -> subprocess.CompletedProcess[str]:
    """Run a driver (a command); the options are its keys."""
    asked = [f"{key}={int(one) if isinstance(one, bool) else one}" for key, one in options.items()]
    command = [*driver, str(dump), *asked]
    return subprocess.run(command, capture_output=True, text=True, env=env, check=False)


def lines(done: subprocess.CompletedProcess[str]) -> list[Line]:
    """What a driver found."""
    if done.returncode:
        raise RuntimeError(f"{done.args}: {done.returncode}\n{done.stdout}\n{done.stderr}")
    return [_line(line.split()) for line in done.stdout.splitlines()]


def _line(parts: list[str]) -> Line:
    source, rank, truncated, cost = parts[:4]
    ids = tuple(map(int, parts[12:]))
    labels, seen = "".join(parts[4:8]), "".join(parts[8:12])
    cut_off = truncated == "1"
    return Line(int(source), int(rank), cut_off, float.fromhex(cost), labels, seen, ids)


def kinds(driver: Sequence[str]) -> list[str]:
    """The kinds of kernels that a driver can run here."""
    done = subprocess.run([*driver, "kinds"], capture_output=True, text=True, check=True)
    return done.stdout.split()
