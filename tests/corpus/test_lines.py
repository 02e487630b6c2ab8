import gzip
import os
import random
import tracemalloc
from collections import deque
from contextlib import suppress
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from ledeline.core.errors import CorpusError
from ledeline.corpus import lines
from ledeline.corpus.lines import (
    FileReadError,
    decode,
    excerpt,
    format_suffix,
    read_lines,
    write_lines,
)


def zstd(data: bytes) -> bytes:
    return bytes(pa.Codec("zstd").compress(data))


PACKERS = {"": bytes, ".gz": gzip.compress, ".zst": zstd}


def written(folder: Path, data: bytes, suffix: str = "") -> Path:
    path = folder / f"text.txt{suffix}"
    path.write_bytes(data)
    return path


def lines_before_break(path: Path) -> tuple[list[bytes], FileReadError]:
    given: list[bytes] = []
    with pytest.raises(FileReadError) as broken:
        deque(map(given.append, read_lines(path)))
    return given, broken.value


@pytest.mark.parametrize("suffix", PACKERS)
def test_lines_end_with_a_line_feed_only(tmp_path, suffix):
    text = "one\r\ntwo\x0c\x0b\x1c\u2028\u2029\x85 still two\n\n \rfour\r\r\n\0five"
    path = written(tmp_path, PACKERS[suffix](text.encode()), suffix)
    assert [decode(line) for line in read_lines(path)] == [
        "one",
        "two\x0c\x0b\x1c\u2028\u2029\x85 still two",
        "",
        " \rfour\r",
        "\0five",
    ]


@pytest.mark.parametrize("suffix", PACKERS)
def test_last_line_may_lack_its_end(tmp_path, suffix):
    pack = PACKERS[suffix]
    assert list(read_lines(written(tmp_path, pack(b"a\nb"), suffix))) == [b"a", b"b"]
    assert list(read_lines(written(tmp_path, pack(b"a\nb\n"), suffix))) == [b"a", b"b"]
    assert list(read_lines(written(tmp_path, pack(b"\n"), suffix))) == [b""]


@pytest.mark.parametrize("suffix", [".gz", ".zst"])
def test_several_members_make_one_text(tmp_path, suffix):
    pack = PACKERS[suffix]
    data = pack(b"one\ntw") + pack(b"") + pack(b"o\nthree\n")
    assert list(read_lines(written(tmp_path, data, suffix))) == [b"one", b"two", b"three"]


def test_suffix_may_be_in_capitals(tmp_path):
    assert list(read_lines(written(tmp_path, gzip.compress(b"a\n"), ".GZ"))) == [b"a"]


@given(
    texts=st.lists(st.binary(max_size=20).map(lambda text: text.replace(b"\n", b"\r"))),
    block=st.integers(1, 7),
    suffix=st.sampled_from(list(PACKERS)),
)
@example(texts=[b"\xef\xbb\xbf"], block=1, suffix="")
@settings(deadline=None, max_examples=80)
def test_block_borders_do_not_show(tmp_path_factory, texts, block, suffix):
    data = b"\n".join(texts)
    path = written(tmp_path_factory.mktemp("text"), PACKERS[suffix](data), suffix)
    expected = data.removeprefix(b"\xef\xbb\xbf").split(b"\n")
    if not expected[-1]:  # what follows the last line end is a line only if there is something
        expected.pop()
    got: list[bytes] = []
    with pytest.MonkeyPatch.context() as patch, suppress(FileReadError):  # if the file is empty
        patch.setattr(lines, "BLOCK_BYTES", block)
        got += read_lines(path)
    assert got == [line.removesuffix(b"\r") for line in expected]


@pytest.mark.parametrize("suffix", PACKERS)
def test_byte_order_mark_is_removed_at_the_start_only(tmp_path, suffix):
    mark = b"\xef\xbb\xbf"
    path = written(tmp_path, PACKERS[suffix](mark + b"a\n" + mark + b"b\n"), suffix)
    assert list(read_lines(path)) == [b"a", mark + b"b"]


@pytest.mark.parametrize("suffix", PACKERS)
@pytest.mark.parametrize("data", [b"", b"\xef\xbb\xbf"])
def test_empty_file(tmp_path, suffix, data):
    given, broken = lines_before_break(written(tmp_path, PACKERS[suffix](data), suffix))
    assert given == []
    assert (broken.line, broken.reason) == (0, "the file is empty")


@pytest.mark.parametrize("suffix", PACKERS)
def test_empty_file_that_is_not_even_packed(tmp_path, suffix):
    path = written(tmp_path, b"", suffix)
    _, broken = lines_before_break(path)
    assert str(broken.invalid_row(path)) == f"{path}: the file is empty"


def test_missing_file_and_folder_are_named(tmp_path):
    with pytest.raises(CorpusError, match=r"none\.txt: no such file$"):
        next(read_lines(tmp_path / "none.txt"))
    with pytest.raises(CorpusError, match="folder") as error:
        next(read_lines(tmp_path))
    assert str(tmp_path) in str(error.value)
    with pytest.raises(CorpusError, match="cannot be opened"):
        next(read_lines(Path("a\0b")))


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_file_that_must_not_be_read(tmp_path):
    path = written(tmp_path, b"a\n")
    path.chmod(0)
    with pytest.raises(CorpusError, match="cannot be opened: Permission denied"):
        next(read_lines(path))


DICE = random.Random(1)  # lines that no compressor can guess: all parts pack equally well
NUMBERED = b"".join(b"%d %x\n" % (number, DICE.getrandbits(160)) for number in range(50_000))


@pytest.mark.parametrize("suffix", [".gz", ".zst"])
@pytest.mark.parametrize("kept", [0.0, 0.3, 0.9999])
def test_whole_lines_before_a_break_are_given(tmp_path, suffix, kept):
    packed = PACKERS[suffix](NUMBERED)
    size = max(1, int(len(packed) * kept))
    path = written(tmp_path, packed[:size], suffix)
    given, broken = lines_before_break(path)
    assert given == NUMBERED.split(b"\n")[: len(given)]
    # a compressor holds back a block of 128 KiB at most
    assert len(b"\n".join(given)) >= len(NUMBERED) * kept * 0.9 - (1 << 17)
    assert broken.line == len(given) + 1
    assert str(broken.invalid_row(path)).startswith(
        f"{path}: line {broken.line}: the file cannot be read beyond this point"
    )


@pytest.mark.parametrize("suffix", [".gz", ".zst"])
def test_break_in_a_later_member_keeps_the_first(tmp_path, suffix):
    pack = PACKERS[suffix]
    for rest in (pack(b"three\n")[:-1], pack(b"three\n")[:3], b"no such member"):
        given, broken = lines_before_break(written(tmp_path, pack(b"one\ntwo\n") + rest, suffix))
        assert given[:2] == [b"one", b"two"]
        assert broken.line == len(given) + 1


@pytest.mark.parametrize("suffix", [".gz", ".zst"])
def test_file_that_is_not_packed_at_all(tmp_path, suffix):
    given, broken = lines_before_break(written(tmp_path, b"plain text\nof two lines\n", suffix))
    assert given == []
    assert broken.line == 1


def test_flipped_bits_are_noticed(tmp_path):
    packed = bytearray(gzip.compress(NUMBERED))
    packed[len(packed) // 2] ^= 0xFF
    _, broken = lines_before_break(written(tmp_path, bytes(packed), ".gz"))
    assert broken.line > 1


def test_endless_line_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(lines, "LINE_LIMIT_BYTES", 3 << 20)
    given, broken = lines_before_break(written(tmp_path, b"a\n" + b"x" * (6 << 20)))
    assert given == [b"a"]
    assert (broken.line, broken.reason) == (2, "the line is longer than 3,145,728 bytes")


@pytest.mark.parametrize("suffix", PACKERS)
def test_memory_does_not_grow_with_the_file(tmp_path, suffix):
    path = written(
        tmp_path, PACKERS[suffix](b"forty characters of text in each line..\n" * 200_000)
    )
    path = path.rename(tmp_path / f"text{suffix}")
    tracemalloc.start()
    count = sum(1 for _ in read_lines(path))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert count == 200_000
    assert peak < 8 << 20  # of the 8 MB of the file; a block of 1 MiB and its lines


def test_decode_is_strict():
    assert decode("naïve \u2028 😀".encode()) == "naïve \u2028 😀"
    for data in (b"\xff", b"\xed\xa0\x80", b"\xc0\x80", b"caf\xe9"):
        with pytest.raises(UnicodeDecodeError):
            decode(data)


def test_excerpt_is_short_and_never_fails():
    assert excerpt(b"abc\r\n") == "abc"
    assert excerpt(b"a\xffb") == "a\\xffb"
    assert excerpt("😀".encode() * 1000) == "😀" * 200
    assert excerpt(b"." + "😀".encode() * 1000) == "." + "😀" * 199
    assert excerpt("x" * 1000) == "x" * 200


@pytest.mark.parametrize(
    ("name", "suffix"),
    [
        ("x.csv", ".csv"),
        ("x.csv.gz", ".csv"),
        ("x.JSONL.ZST", ".jsonl"),
        ("a.b.parquet", ".parquet"),
        ("x.gz", ""),
        ("x", ""),
        (".gz", ""),
        ("x.csv.bz2", ".bz2"),
    ],
)
def test_table_suffix(name, suffix):
    assert format_suffix(Path("some.csv") / name) == suffix


@pytest.mark.parametrize("suffix", PACKERS)
def test_written_lines_are_read_back(tmp_path, suffix):
    path = tmp_path / f"x{suffix}"
    write_lines(path, (f"{number} é\n" for number in range(1000)))
    assert [decode(line) for line in read_lines(path)] == [f"{number} é" for number in range(1000)]
    first = path.read_bytes()
    write_lines(path, (f"{number} é\n" for number in range(1000)))
    assert path.read_bytes() == first
