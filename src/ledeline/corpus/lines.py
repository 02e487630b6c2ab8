r"""Lines of a text file, plain or compressed.

A line ends with ``\n`` alone; a line separator of Unicode, a form feed or a lone carriage return
is part of it. Files that end in ``.gz`` or ``.zst`` are unpacked and packed on the way. Nothing
here holds more of a file than a block and a line.
"""

import gzip
import json
import tempfile
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, Final

from ledeline.core.errors import CorpusError
from ledeline.corpus import BadRow

BLOCK_BYTES: Final = 1 << 20
LINE_LIMIT_BYTES: Final = 64 << 20  # a longer "line" is no text, and would fill the memory
EXCERPT_CHARACTERS: Final = 200
COMPRESSION_SUFFIXES: Final = (".gz", ".zst")
BYTE_ORDER_MARK: Final = b"\xef\xbb\xbf"

_BREAKS: Final = (EOFError, OSError, zlib.error)


class BrokenStream(Exception):
    """The lines of a file end before they should; all whole lines before were given.

    ``line`` is the first one that could not be given, or 0 where the whole file is meant.
    """

    def __init__(self, line: int, reason: str) -> None:
        super().__init__(line, reason)
        self.line = line
        self.reason = reason

    def row(self, path: Path) -> BadRow:
        """Return the bad row that says so."""
        return BadRow(str(path), self.line, self.reason, "")


def read_lines(path: Path) -> Iterator[bytes]:
    r"""Yield the lines of a file without their end, be it ``\n`` or ``\r\n``.

    A file that cannot be opened is a ``CorpusError``; one that is empty or whose data break off is
    a ``BrokenStream``.
    """
    for line in RawLines(read_blocks(path)):
        yield line.removesuffix(b"\r")


class RawLines:
    """Lines as ``read_lines`` gives them, with a carriage return before the end left in place.

    They can be read once.
    """

    def __init__(self, blocks: Iterable[bytes]) -> None:
        self._start = bytearray()
        self.runs = line_runs(_noted(blocks, self._start))

    @property
    def has_mark(self) -> bool:
        """Whether a byte order mark stood before the first line, once that was read."""
        return self._start == BYTE_ORDER_MARK

    def __iter__(self) -> Iterator[bytes]:
        for lines in self.runs:
            yield from lines


def _noted(blocks: Iterable[bytes], start: bytearray) -> Iterator[bytes]:
    """Yield blocks, and note as many of the first bytes as a byte order mark has."""
    for block in blocks:
        start += block[: len(BYTE_ORDER_MARK) - len(start)]
        yield block


def line_runs(blocks: Iterable[bytes]) -> Iterator[list[bytes]]:
    """Yield for each block the lines that end in it, and last the line without an end."""
    number = 0
    pieces: list[bytes] = []  # of the line that is not whole yet
    try:
        for block in blocks:
            lines = block.split(b"\n")
            pieces.append(lines[0])
            if len(lines) == 1:
                _refuse_endless(number + 1, pieces)
                yield []
                continue
            lines[0] = _joined(pieces, number)
            pieces = [lines.pop()]
            number += len(lines)
            yield lines
    except _BREAKS as error:
        raise BrokenStream(number + 1, _break_reason(error)) from error
    last = _joined(pieces, number)
    if last:
        yield [last]
    elif not number:
        raise BrokenStream(0, "the file is empty")


def _joined(pieces: list[bytes], number: int) -> bytes:
    """Join the pieces of the line after ``number`` others; a mark may precede the first."""
    line = b"".join(pieces)
    return line if number else line.removeprefix(BYTE_ORDER_MARK)


def _refuse_endless(line: int, pieces: list[bytes]) -> None:
    if sum(map(len, pieces)) > LINE_LIMIT_BYTES:
        raise BrokenStream(line, f"the line is longer than {LINE_LIMIT_BYTES:,} bytes")


def _break_reason(error: BaseException) -> str:
    return f"the file breaks off here: {error}"


def read_blocks(path: Path) -> Iterator[bytes]:
    """Yield the unpacked bytes of a file; a break is raised after all that came before it."""
    with open_file(path) as handle:
        match path.suffix.lower():
            case ".gz":
                yield from _gzip_blocks(handle)
            case ".zst":
                yield from _zstd_blocks(handle)
            case _:
                while block := handle.read(BLOCK_BYTES):
                    yield block


def is_binary(path: Path) -> bool:
    """Whether a file begins as no text does, with a NUL; one that breaks off there may be text."""
    try:
        return b"\0" in next(read_blocks(path), b"")
    except _BREAKS:
        return False


def open_file(path: Path) -> BinaryIO:
    """Open a file for reading, or say in one sentence why that cannot be."""
    if path.is_dir():
        raise CorpusError(f"{path}: this is a folder; name the file in it that holds the text")
    try:
        return path.open("rb")
    except FileNotFoundError:
        raise CorpusError(f"{path}: no such file") from None
    except (OSError, ValueError) as error:  # a name that holds a NUL is a ValueError
        reason = getattr(error, "strerror", None) or error
        raise CorpusError(f"{path}: the file cannot be opened: {reason}") from error


def _gzip_blocks(handle: BinaryIO) -> Iterator[bytes]:
    """Unpack one member after another.

    ``read1`` and not ``read``: the latter loses what it has gathered when the data break off.
    """
    with gzip.GzipFile(fileobj=handle) as stream:
        while block := stream.read1(BLOCK_BYTES):
            yield block


def _zstd_blocks(handle: BinaryIO) -> Iterator[bytes]:
    """Unpack one frame after another.

    Where the data break off, pyarrow has filled the block with what came before but does not say
    how far. The block was all zeros, so its last line end is a true one: whole lines are kept.
    """
    import pyarrow as pa  # here, so that other files can be read without it

    stream = pa.CompressedInputStream(handle, "zstd")
    while True:
        block = bytearray(BLOCK_BYTES)
        try:
            length = stream.readinto(block)
        except OSError:
            yield bytes(block[: block.rfind(b"\n") + 1])
            raise
        if not length:
            return
        yield bytes(block[:length])


@contextmanager
def unpacked(path: Path) -> Iterator[Path]:
    """Give a file that can be read at any place: itself, or its contents in a temporary file."""
    if path.suffix.lower() not in COMPRESSION_SUFFIXES:
        with open_file(path) as handle:
            if not handle.read(1):
                raise BrokenStream(0, "the file is empty")
        yield path
        return
    with tempfile.NamedTemporaryFile() as copy:
        try:
            copy.writelines(read_blocks(path))
        except _BREAKS as error:
            raise BrokenStream(0, _break_reason(error)) from error
        copy.flush()
        if not copy.tell():
            raise BrokenStream(0, "the file is empty")
        yield Path(copy.name)


def decode(line: bytes) -> str:
    """Return the text of a line; a line that is not UTF-8 raises ``UnicodeDecodeError``."""
    return line.decode("utf-8")


def encoding_reason(error: UnicodeDecodeError) -> str:
    """Say where a line stops being UTF-8."""
    return f"not UTF-8: byte 0x{error.object[error.start]:02x} at byte {error.start + 1}"


def is_encodable(text: str) -> bool:
    """Whether a text can be written, which one with half a character (a surrogate) cannot."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def excerpt(text: bytes | str) -> str:
    r"""Return the start of what stood in a file; bytes that are no text show as ``\xff``."""
    if isinstance(text, bytes):
        # a character is of four bytes at most, so none of those shown is cut in two
        text = text[: 4 * EXCERPT_CHARACTERS + 4].decode("utf-8", errors="backslashreplace")
    return text[:EXCERPT_CHARACTERS].rstrip("\r\n")


def table_suffix(path: Path) -> str:
    """Return the suffix of the format, in lower case: ``.csv`` for ``pairs.CSV.gz``."""
    if path.suffix.lower() in COMPRESSION_SUFFIXES:
        path = path.with_suffix("")
    return path.suffix.lower()


def write_lines(path: Path, lines: Iterable[str]) -> None:
    """Write lines that bring their own ends, packed as the suffix of the name says."""
    data = (line.encode("utf-8") for line in lines)
    match path.suffix.lower():
        case ".gz":
            with path.open("wb") as handle, _gzip_writer(handle) as stream:
                stream.writelines(data)
        case ".zst":
            import pyarrow as pa

            with pa.output_stream(path, compression="zstd", buffer_size=BLOCK_BYTES) as stream:
                stream.writelines(data)
        case _:
            with path.open("wb") as handle:
                handle.writelines(data)


def _gzip_writer(handle: BinaryIO) -> gzip.GzipFile:
    """Pack with neither name nor time in the header: the same lines give the same bytes."""
    return gzip.GzipFile("", "wb", compresslevel=6, fileobj=handle, mtime=0)


def json_line(value: object) -> str:
    """Return a line of JSON; half a character, which no file can hold, is written as an escape."""
    line = json.dumps(value, ensure_ascii=False) + "\n"
    return line if is_encodable(line) else json.dumps(value) + "\n"
