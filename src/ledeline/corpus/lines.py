r"""Lines of a text file, plain or compressed.

A line ends with ``\n`` only; a line separator of Unicode, a form feed or a lone carriage return is
part of it. Files that end in ``.gz`` or ``.zst`` are decompressed and compressed. At most a block
and a line of a file are in memory.
"""

import json
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Final

from ledeline.core.errors import CorpusError
from ledeline.corpus import InvalidRow

if TYPE_CHECKING:
    import gzip

BLOCK_BYTES: Final = 1 << 20
LINE_LIMIT_BYTES: Final = 64 << 20  # a longer "line" is not text, and would fill the memory
EXCERPT_CHARACTERS: Final = 200
COMPRESSION_SUFFIXES: Final = (".gz", ".zst")
BYTE_ORDER_MARK: Final = b"\xef\xbb\xbf"


def _read_errors() -> tuple[type[Exception], ...]:
    """What reading can raise; asked for once something was raised."""
    import zlib

    return EOFError, OSError, zlib.error


class FileReadError(Exception):
    """A file cannot be read to its end; all complete lines before were yielded.

    ``line`` is the first line that could not be read, or 0 for the whole file.
    """

    def __init__(self, line: int, reason: str) -> None:
        super().__init__(line, reason)
        self.line = line
        self.reason = reason

    def invalid_row(self, path: Path) -> InvalidRow:
        """Return the invalid row that reports it."""
        return InvalidRow(str(path), self.line, self.reason, "")


def read_lines(path: Path) -> Iterator[bytes]:
    r"""Yield the lines of a file without their end, ``\n`` or ``\r\n``.

    A file that cannot be opened is a ``CorpusError``; one that is empty or truncated is a
    ``FileReadError``.
    """
    for line in RawLines(read_blocks(path)):
        yield line.removesuffix(b"\r")


class RawLines:
    """Lines like those of ``read_lines``, but a carriage return before the end is kept.

    They can be read only once.
    """

    def __init__(self, blocks: Iterable[bytes]) -> None:
        self._start = bytearray()
        self.by_block = split_lines(_with_start(blocks, self._start))

    @property
    def has_byte_order_mark(self) -> bool:
        """Whether there was a byte order mark before the first line, once that was read."""
        return self._start == BYTE_ORDER_MARK

    def __iter__(self) -> Iterator[bytes]:
        for lines in self.by_block:
            yield from lines


def _with_start(blocks: Iterable[bytes], start: bytearray) -> Iterator[bytes]:
    """Yield the blocks, and copy the first bytes, as many as a byte order mark has."""
    for block in blocks:
        start += block[: len(BYTE_ORDER_MARK) - len(start)]
        yield block


def split_lines(blocks: Iterable[bytes]) -> Iterator[list[bytes]]:
    """Yield for each block the lines that end in it, and finally the last line without an end."""
    number = 0
    pieces: list[bytes] = []  # of the line that is not complete yet
    try:
        for block in blocks:
            lines = block.split(b"\n")
            pieces.append(lines[0])
            if len(lines) == 1:
                _check_line_length(number + 1, pieces)
                yield []
                continue
            lines[0] = _joined(pieces, number)
            pieces = [lines.pop()]
            number += len(lines)
            yield lines
    except _read_errors() as error:
        raise FileReadError(number + 1, _truncation(error)) from error
    last = _joined(pieces, number)
    if last:
        yield [last]
    elif not number:
        raise FileReadError(0, "the file is empty")


def _joined(pieces: list[bytes], number: int) -> bytes:
    """Join the pieces of the line after ``number`` others, without a byte order mark."""
    line = b"".join(pieces)
    return line if number else line.removeprefix(BYTE_ORDER_MARK)


def _check_line_length(line: int, pieces: list[bytes]) -> None:
    if sum(map(len, pieces)) > LINE_LIMIT_BYTES:
        raise FileReadError(line, f"the line is longer than {LINE_LIMIT_BYTES:,} bytes")


def _truncation(error: BaseException) -> str:
    return f"the file cannot be read beyond this point: {error}"


def read_blocks(path: Path) -> Iterator[bytes]:
    """Yield the decompressed bytes of a file; an error is raised after all bytes before it."""
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
    """Whether the first block of a file has a NUL byte, which text does not have."""
    try:
        return b"\0" in next(read_blocks(path), b"")
    except _read_errors():
        return False


def open_file(path: Path) -> BinaryIO:
    """Open a file for reading; an error says in one sentence why it cannot be opened."""
    if path.is_dir():
        raise CorpusError(f"{path}: this is a folder; name a file in it")
    try:
        return path.open("rb")
    except FileNotFoundError:
        raise CorpusError(f"{path}: no such file") from None
    except (OSError, ValueError) as error:  # a name that holds a NUL is a ValueError
        reason = getattr(error, "strerror", None) or error
        raise CorpusError(f"{path}: the file cannot be opened: {reason}") from error


def _gzip_blocks(handle: BinaryIO) -> Iterator[bytes]:
    """Decompress one member after another.

    ``read1`` is used because ``read`` loses what it has collected when the data are truncated.
    """
    import gzip

    with gzip.GzipFile(fileobj=handle) as stream:
        while block := stream.read1(BLOCK_BYTES):
            yield block


def _zstd_blocks(handle: BinaryIO) -> Iterator[bytes]:
    """Decompress one frame after another.

    If the data are truncated, pyarrow has written what came before into the block, but does not say
    how much. The block was all zeros, so its last line end is a real one: complete lines are kept.
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
def decompressed(path: Path) -> Iterator[Path]:
    """Give a path to the decompressed file: the file itself, or a temporary copy."""
    if path.suffix.lower() not in COMPRESSION_SUFFIXES:
        with open_file(path) as handle:
            if not handle.read(1):
                raise FileReadError(0, "the file is empty")
        yield path
        return
    import tempfile

    with tempfile.NamedTemporaryFile() as copy:
        try:
            copy.writelines(read_blocks(path))
        except _read_errors() as error:
            raise FileReadError(0, _truncation(error)) from error
        copy.flush()
        if not copy.tell():
            raise FileReadError(0, "the file is empty")
        yield Path(copy.name)


def decode(line: bytes) -> str:
    """Return the text of a line; a line that is not UTF-8 raises ``UnicodeDecodeError``."""
    return line.decode("utf-8")


def encoding_error(error: UnicodeDecodeError) -> str:
    """Say where a line stops being UTF-8."""
    return f"not UTF-8: byte 0x{error.object[error.start]:02x} at byte {error.start + 1}"


def is_encodable(text: str) -> bool:
    """Whether a text can be encoded; one with a lone surrogate cannot."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def excerpt(text: bytes | str) -> str:
    r"""Return the start of a text for a message; bytes that are not UTF-8 become ``\xff``."""
    if isinstance(text, bytes):
        # a character has at most four bytes, so that none of those shown is cut in two
        text = text[: 4 * EXCERPT_CHARACTERS + 4].decode("utf-8", errors="backslashreplace")
    return text[:EXCERPT_CHARACTERS].rstrip("\r\n")


def format_suffix(path: Path) -> str:
    """Return the suffix that tells the format, in lower case: ``.csv`` for ``pairs.CSV.gz``."""
    if path.suffix.lower() in COMPRESSION_SUFFIXES:
        path = path.with_suffix("")
    return path.suffix.lower()


def write_lines(path: Path, lines: Iterable[str]) -> None:
    """Write lines that have their line ends, compressed if the suffix of the name says so."""
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


def _gzip_writer(handle: BinaryIO) -> "gzip.GzipFile":
    """Compress without name and time in the header, so that the same lines give the same bytes."""
    import gzip

    return gzip.GzipFile("", "wb", compresslevel=6, fileobj=handle, mtime=0)


def json_line(value: object) -> str:
    """Return a line of JSON; lone surrogates, which no file can hold, are escaped."""
    line = json.dumps(value, ensure_ascii=False) + "\n"
    return line if is_encodable(line) else json.dumps(value) + "\n"
