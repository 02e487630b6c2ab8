"""Files of weights (safetensors), mapped into memory and checked, so that no file can do harm.

A file is the length of its header (8 bytes, little-endian), the header in JSON, and the values. The
header has for each tensor its type, its shape, and where its values begin and end.
"""

import json
import math
import mmap
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeAlias

from ledeline.core.errors import ModelError

SIZES: Final = {"F32": 4, "F16": 2, "I8": 1}  # bytes of a value
NAMES: Final = {"F32": "float32", "F16": "float16", "I8": "int8"}
_MAX_HEADER: Final = 2**24  # bytes
_MAX_DIMENSIONS: Final = 8
_MAX_NAME: Final = 80  # characters; those of the systems have half as many
_MAX_TOLD: Final = 80  # characters of a damaged file that an error repeats
_LENGTH: Final = 8


class StoredTensor(NamedTuple):
    """A tensor as a file has it."""

    dtype: str  # a key of `SIZES`
    shape: tuple[int, ...]
    values: memoryview | bytes

    def __str__(self) -> str:
        return f"{NAMES[self.dtype]} {self.shape}"


Tensors: TypeAlias = dict[str, StoredTensor]


def read_tensors(path: Path) -> Tensors:
    """All tensors of a file; their values stay in the file until they are used.

    Nobody may shorten the file meanwhile: the system stops a process that reads behind the end. An
    engine packs the weights when it is made, and needs the file no longer.
    """
    if path.exists() and not path.is_file():
        raise ModelError(f"{path} cannot be read: it is not a file")
    try:
        with path.open("rb") as file:
            data = memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
    except OSError as error:
        raise ModelError(f"{path} cannot be read: {error.strerror}") from None
    except ValueError:
        raise ModelError(f"{path} is damaged: it is empty") from None
    try:
        return _tensors(data)
    except _Damage as damage:
        raise ModelError(f"{path} is damaged: {damage}") from None


def drop_pages(tensors: Tensors) -> None:
    """Let the system take back the memory of tensors that were used; they can be read again."""
    files = {id(file): file for file in map(_mapped, tensors.values()) if file is not None}
    advice = getattr(mmap, "MADV_DONTNEED", None)
    for file in files.values():
        if advice is not None:
            file.madvise(advice)


def _mapped(tensor: StoredTensor) -> mmap.mmap | None:
    """The file that a tensor's values are in, unless they were copied."""
    values = tensor.values
    file = values.obj if isinstance(values, memoryview) else None
    return file if isinstance(file, mmap.mmap) else None


class _Damage(Exception):
    """What is wrong with a file."""


def _tensors(data: memoryview) -> Tensors:
    header, values = _split(data)
    tensors = {}
    ends = []
    for name, entry in header.items():
        if name == "__metadata__":
            continue
        dtype, shape, begin, end = _entry(name, entry, len(values))
        ends.append((begin, end))
        own = values[begin:end]
        aligned = (data.nbytes - values.nbytes + begin) % SIZES[dtype] == 0
        tensors[name] = StoredTensor(dtype, shape, own if aligned else bytes(own))
    at = 0
    for begin, end in sorted(ends):
        if begin != at:
            raise _Damage("its tensors overlap, or have gaps between them")
        at = end
    if at != len(values):
        raise _Damage(f"it has {len(values)} bytes of values, but {at} in its header")
    return tensors


def _split(data: memoryview) -> tuple[dict[str, Any], memoryview]:
    """The header, and the values."""
    if len(data) < _LENGTH:
        raise _Damage("it is too short")
    size = int.from_bytes(data[:_LENGTH], "little")
    if size > min(_MAX_HEADER, len(data) - _LENGTH):
        raise _Damage("its header is longer than the file, or than any header")
    try:
        text = bytes(data[_LENGTH : _LENGTH + size]).decode()
        header = json.loads(text, object_pairs_hook=_table)
    except (ValueError, RecursionError):
        raise _Damage("its header is not JSON") from None
    if not isinstance(header, dict):
        raise _Damage("its header is not a table")
    return header, data[_LENGTH + size :]


def _table(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """A table of JSON whose names are all different."""
    table = dict(pairs)
    if len(table) < len(pairs):
        raise _Damage("its header has a name twice")
    return table


def _told(value: object) -> str:
    """What a damaged file has, so short and plain that it fits into a sentence."""
    text = value if isinstance(value, str) and value.isprintable() else ascii(value)
    return text if len(text) <= _MAX_TOLD else f"{text[:_MAX_TOLD]}..."


def _entry(name: str, entry: Any, num_bytes: int) -> tuple[str, tuple[int, ...], int, int]:
    """The type, the shape and the place of a tensor."""
    own = _told(name)
    try:
        dtype, shape, (begin, end) = entry["dtype"], tuple(entry["shape"]), entry["data_offsets"]
    except (KeyError, TypeError, ValueError):
        raise _Damage(f"{own} has no type, shape and place") from None
    if len(name) > _MAX_NAME or not name.isprintable():
        raise _Damage(f"the name {own} of a tensor is too long, or cannot be printed")
    if dtype not in list(SIZES):
        raise _Damage(f"{own} has the type {_told(dtype)}, which is none of {', '.join(SIZES)}")
    are_sizes = all(type(one) is int and 0 <= one <= num_bytes for one in (*shape, begin, end))
    if type(end) is int and end > num_bytes:
        raise _Damage(f"it ends after {num_bytes} bytes of values, but {own} ends at {end}")
    if len(shape) > _MAX_DIMENSIONS or not are_sizes:
        raise _Damage(f"{own} has the shape {_told(shape)} at {_told(begin)} to {_told(end)}")
    if end - begin != math.prod(shape) * SIZES[dtype]:
        raise _Damage(f"{own} has {end - begin} bytes, which are not those of its shape {shape}")
    return dtype, shape, begin, end
