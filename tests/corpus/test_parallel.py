import gzip
import tracemalloc
from pathlib import Path

import pyarrow as pa
import pytest

from ledeline.core.errors import CorpusError
from ledeline.corpus import InvalidRow, Pair
from ledeline.corpus.parallel import read_parallel


def two_files(folder: Path, ledes: bytes, headlines: bytes) -> tuple[Path, Path]:
    (folder / "ledes.txt").write_bytes(ledes)
    (folder / "headlines.txt").write_bytes(headlines)
    return folder / "ledes.txt", folder / "headlines.txt"


def test_lines_are_paired_in_order(tmp_path):
    ledes, headlines = two_files(tmp_path, "a é .\r\n\nc\u2028c".encode(), b"A\nB\nC\n")
    assert list(read_parallel(ledes, headlines)) == [
        Pair("a é .", "A", None, str(ledes), 1),
        Pair("", "B", None, str(ledes), 2),
        Pair("c\u2028c", "C", None, str(ledes), 3),
    ]


def test_either_file_may_be_packed(tmp_path):
    ledes, headlines = tmp_path / "l.gz", tmp_path / "h.zst"
    ledes.write_bytes(gzip.compress(b"a\n") + gzip.compress(b"b\n"))
    headlines.write_bytes(bytes(pa.Codec("zstd").compress(b"A\nB\n")))
    pairs = list(read_parallel(ledes, headlines))
    assert [(pair.lede, pair.headline) for pair in pairs] == [("a", "A"), ("b", "B")]


def test_bad_bytes_name_their_file_and_reading_goes_on(tmp_path):
    ledes, headlines = two_files(tmp_path, b"a\nb\xff\nc\nd\xff\n", b"A\nB\nC\xc3\nD\xff\n")
    first, second, third, fourth = read_parallel(ledes, headlines)
    assert isinstance(first, Pair)
    reason = "not UTF-8: byte 0xff at byte 2"
    assert second == InvalidRow(str(ledes), 2, reason, "b\\xff")
    assert str(third) == f"{headlines}: line 3: not UTF-8: byte 0xc3 at byte 2"
    assert (fourth.file, fourth.line) == (str(ledes), 4)


@pytest.mark.parametrize("swapped", [False, True])
def test_surplus_lines_name_the_file_that_ended(tmp_path, swapped):
    long, short = b"one\ntwo\nthree\nfour\n", b"ONE\nTWO\n"
    ledes, headlines = two_files(tmp_path, *((short, long) if swapped else (long, short)))
    longer, shorter = (headlines, ledes) if swapped else (ledes, headlines)
    rows = list(read_parallel(ledes, headlines))
    assert [type(row) for row in rows] == [Pair, Pair, InvalidRow, InvalidRow]
    reason = f"this line has no counterpart, because {shorter} ends at line 2"
    assert rows[2] == InvalidRow(str(longer), 3, reason, "three")
    assert rows[3] == InvalidRow(str(longer), 4, reason, "four")


def test_empty_files(tmp_path):
    ledes, headlines = two_files(tmp_path, b"", b"A\n")
    assert [str(row) for row in read_parallel(ledes, headlines)] == [
        f"{ledes}: the file is empty",
        f"{headlines}: line 1: this line has no counterpart, because {ledes} ends at line 0",
    ]
    ledes, headlines = two_files(tmp_path, b"", b"")
    assert [row.file for row in read_parallel(ledes, headlines)] == [str(ledes), str(headlines)]


def test_file_that_breaks_off(tmp_path):
    headlines = tmp_path / "h.txt"
    headlines.write_text("A\nB\nC\n")
    ledes = tmp_path / "l.gz"
    ledes.write_bytes(gzip.compress(b"a\nb\n") + b"broken")
    rows = list(read_parallel(ledes, headlines))
    assert [type(row) for row in rows] == [Pair, Pair, InvalidRow, InvalidRow]
    assert str(rows[2]).startswith(f"{ledes}: line 3: the file cannot be read beyond this point")
    assert (rows[3].file, rows[3].line) == (str(headlines), 3)


def test_missing_file(tmp_path):
    (tmp_path / "a").write_text("a\n")
    with pytest.raises(CorpusError, match="nothing: no such file"):
        list(read_parallel(tmp_path / "a", tmp_path / "nothing"))


def test_memory_does_not_grow_with_the_files(tmp_path):
    ledes, headlines = two_files(
        tmp_path, b"a lede of some words\n" * 200_000, b"words\n" * 200_000
    )
    tracemalloc.start()
    assert sum(isinstance(row, Pair) for row in read_parallel(ledes, headlines)) == 200_000
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 20 << 20
