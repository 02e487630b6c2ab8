"""Pairs from two text files: line n of the one is the lede of line n of the other."""

from collections.abc import Iterator
from itertools import zip_longest
from pathlib import Path

from ledeline.corpus import BadRow, Pair, Row
from ledeline.corpus.lines import BrokenStream, decode, encoding_reason, excerpt, read_lines


def read_parallel(ledes: Path, headlines: Path) -> Iterator[Row]:
    """Yield the pairs of two files, plain or compressed; a line without a partner is a bad row."""
    last = 0  # the last line that both files have
    both = zip_longest(_lines(ledes), _lines(headlines))
    for number, (lede, headline) in enumerate(both, start=1):
        if isinstance(lede, bytes) and isinstance(headline, bytes):
            yield _pair(ledes, headlines, number, lede, headline)
            last = number
            continue
        for path, line, other in ((ledes, lede, headlines), (headlines, headline, ledes)):
            if isinstance(line, BadRow):
                yield line
            elif line is not None:
                reason = f"this line has no partner, because {other} ended at line {last}"
                yield BadRow(str(path), number, reason, excerpt(line))


def _lines(path: Path) -> Iterator[bytes | BadRow]:
    """Yield the lines of a file, and last a bad row where it breaks off or is empty."""
    try:
        yield from read_lines(path)
    except BrokenStream as broken:
        yield broken.row(path)


def _pair(ledes: Path, headlines: Path, number: int, lede: bytes, headline: bytes) -> Row:
    path, line = ledes, lede
    try:
        lede_text = decode(line)
        path, line = headlines, headline
        return Pair(lede_text, decode(line), None, str(ledes), number)
    except UnicodeDecodeError as error:
        return BadRow(str(path), number, encoding_reason(error), excerpt(line))
