"""Pairs from two text files: line n of one is the lede, line n of the other its headline."""

from collections.abc import Iterator
from itertools import zip_longest
from pathlib import Path

from ledeline.corpus import InvalidRow, Pair, Row
from ledeline.corpus.lines import FileReadError, decode, encoding_error, excerpt, read_lines


def read_parallel(ledes: Path, headlines: Path) -> Iterator[Row]:
    """Yield the pairs of two files, plain or compressed; an unpaired line is an invalid row."""
    last = 0  # the last line that both files have
    both = zip_longest(_lines(ledes), _lines(headlines))
    for number, (lede, headline) in enumerate(both, start=1):
        if isinstance(lede, bytes) and isinstance(headline, bytes):
            yield _pair(ledes, headlines, number, lede, headline)
            last = number
            continue
        for path, line, other in ((ledes, lede, headlines), (headlines, headline, ledes)):
            if isinstance(line, InvalidRow):
                yield line
            elif line is not None:
                reason = f"this line has no counterpart, because {other} ends at line {last}"
                yield InvalidRow(str(path), number, reason, excerpt(line))


def _lines(path: Path) -> Iterator[bytes | InvalidRow]:
    """Yield the lines of a file, and an invalid row at the end if it is truncated or empty."""
    try:
        yield from read_lines(path)
    except FileReadError as broken:
        yield broken.invalid_row(path)


def _pair(ledes: Path, headlines: Path, number: int, lede: bytes, headline: bytes) -> Row:
    path, line = ledes, lede
    try:
        lede_text = decode(line)
        path, line = headlines, headline
        return Pair(lede_text, decode(line), None, str(ledes), number)
    except UnicodeDecodeError as error:
        return InvalidRow(str(path), number, encoding_error(error), excerpt(line))
