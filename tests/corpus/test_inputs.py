import gzip
import os
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from ledeline.core.errors import ConfigError, CorpusError
from ledeline.corpus.delimited import Dialect
from ledeline.corpus.inputs import FileInput, StreamInput, TextInput, open_input
from ledeline.corpus.lines import LINE_LIMIT_BYTES
from ledeline.corpus.records import InputLayout, Record
from ledeline.corpus.table_writer import write_table


@pytest.fixture
def ends() -> Iterator[tuple[int, int]]:
    reading, writing = os.pipe()
    yield reading, writing
    os.close(reading)


@pytest.fixture
def pipe(ends) -> tuple[StreamInput, int]:
    return StreamInput(ends[0]), ends[1]


def test_a_stream_gives_lines_once_they_are_whole(pipe):
    stream, writing = pipe
    records = stream.records(whole=True)
    os.write(writing, b"\xef\xbb\xbfone\r\ntwo\nthr")
    assert next(records) == Record("one", 1, ("source",), ("one",))
    assert not stream.would_block()
    assert next(records).text == "two"
    assert stream.would_block()
    os.write(writing, b"e")
    assert stream.would_block(), "half a line is no line"
    os.write(writing, b"e\n\n")
    assert not stream.would_block()
    assert [next(records).text, next(records).text] == ["three", ""]
    assert stream.would_block()
    os.write(writing, b"\xff\nlast")
    os.close(writing)
    assert not stream.would_block()
    bad, last = records
    assert str(bad) == "standard input: line 5: not UTF-8: byte 0xff at byte 1"
    assert (last.text, last.line) == ("last", 6)
    assert not stream.would_block(), "an end is nothing to wait for"


def test_a_stream_waits_for_a_slow_writer(pipe):
    stream, writing = pipe

    def write() -> None:
        for part in (b"a", b"b\nc", b"d\n"):
            time.sleep(0.05)
            os.write(writing, part)
        os.close(writing)

    thread = threading.Thread(target=write)
    thread.start()
    assert [record.text for record in stream.records(whole=True)] == ["ab", "cd"]
    thread.join()


def test_an_empty_stream(pipe):
    stream, writing = pipe
    os.close(writing)
    assert list(stream.records(whole=True)) == []


def test_a_line_without_an_end_does_not_fill_the_memory():
    with Path("/dev/zero").open("rb") as endless:
        records = StreamInput(endless.fileno()).records(whole=True)
        with pytest.raises(CorpusError, match=f"line 1: .*longer than {LINE_LIMIT_BYTES:,} bytes"):
            next(records)


def test_a_stream_of_csv_gives_records_once_they_are_whole(ends):
    reading, writing = ends
    stream = StreamInput(reading, layout=InputLayout("csv", "story"))
    os.write(writing, b"\xef")  # one byte at a time, as a slow writer may
    os.write(writing, b'\xbb\xbfid;story\r\n1;a\r\n2;"b\n')
    records = stream.records(whole=True)
    assert next(records) == Record("a", 2, ("id", "story"), ["1", "a"])
    assert (stream.columns, stream.dialect) == (("id", "story"), Dialect(";", "\r\n", "\ufeff"))
    os.write(writing, b'c"\r\nshort\r\n')
    assert next(records).text == "b\nc"
    assert not stream.would_block()
    assert str(next(records)) == "standard input: line 5: 1 field, but the header has 2"
    assert stream.would_block()
    os.close(writing)
    assert list(records) == []


def test_a_stream_of_objects_names_its_columns_and_loses_none(ends):
    reading, writing = ends
    os.write(writing, b'{"lede": "a", "n": 1}\r\n{"broken\n{"lede": "b"}')
    os.close(writing)
    stream = StreamInput(reading, layout=InputLayout("jsonl"))
    assert (stream.columns, stream.dialect.line_end) == (("lede", "n"), "\r\n")
    first, bad, last = stream.records(whole=True)
    assert (first.text, first.values, last.text, last.line) == ("a", ("a", 1), "b", 3)
    assert bad.reason == "not JSON: Unterminated string starting at character 2"


def test_the_first_object_of_a_stream_names_the_columns_of_a_table(ends):
    reading, writing = ends
    os.write(writing, b"no object\n")
    with pytest.raises(CorpusError, match=r"line 1: not JSON: .*; correct it, because the first"):
        StreamInput(reading, layout=InputLayout("jsonl")).columns  # noqa: B018 - to ask is to read
    os.close(writing)


@pytest.mark.parametrize(("kind", "columns"), [("txt", ("source",)), ("jsonl", ())])
def test_an_empty_stream_has_columns(ends, kind, columns):
    os.close(ends[1])
    stream = StreamInput(ends[0], layout=InputLayout(kind))
    assert stream.columns == columns
    assert list(stream.records(whole=True)) == []


def test_a_stream_without_a_header_is_refused(ends):
    os.close(ends[1])
    with pytest.raises(CorpusError, match="standard input: there is no header row"):
        StreamInput(ends[0], layout=InputLayout("csv")).records(whole=True)


def test_texts_are_numbered():
    texts = TextInput(["a", ""])
    assert [(one.text, one.line) for one in texts.records(whole=True)] == [("a", 1), ("", 2)]
    assert not texts.would_block()


def test_which_input(tmp_path, monkeypatch):
    (tmp_path / "x.txt").write_text("a\n")
    assert isinstance(open_input([], tmp_path / "x.txt", None), FileInput)
    with pytest.raises(ConfigError, match="- reads standard input; give ledes or -, not both"):
        open_input(["a", "-"], None, None)
    with Path("/dev/null").open() as empty:
        monkeypatch.setattr(sys, "stdin", empty)
        for given in (
            open_input([], None, None),
            open_input(["-"], None, None),
            open_input([], Path("-"), None),
        ):
            assert isinstance(given, StreamInput)
            assert not given.is_terminal
    monkeypatch.setattr(sys, "stdin", None)
    with pytest.raises(ConfigError, match="standard input is closed"):
        open_input([], None, None)


def test_a_pipe_with_a_name_is_refused_for_files_are_read_twice(tmp_path):
    os.mkfifo(tmp_path / "x.txt")
    with pytest.raises(CorpusError, match=r"x\.txt is a pipe or a device; give it as standard"):
        open_input([], tmp_path / "x.txt", None)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ((["a"], Path("x.txt"), None), "give ledes or --input, not both"),
        ((["a"], None, "lede"), "--field lede: only a table has columns; name one with --input"),
        ((["a"], None, None, "csv"), "--format csv: only a file has a format"),
        (([], None, "lede"), "--field lede: only a table .*, or set the format of standard"),
        (([], Path("-"), "lede", "txt"), "--field lede: only a table has columns"),
        (
            ([], Path("-"), None, "parquet"),
            "--format parquet: standard input cannot be Parquet; name a",
        ),
        ((["a"], None, None, None, "tab"), "--delimiter tab: only CSV has a delimiter"),
        (([], Path("x.tsv"), None, None, "bar"), "--delimiter bar: only CSV .*use --format csv"),
        (([], Path("x.csv"), None, "tsv", "bar"), "--delimiter bar: only CSV has a delimiter"),
    ],
)
def test_inputs_at_odds(monkeypatch, arguments, sentence):
    with Path("/dev/null").open() as empty:
        monkeypatch.setattr(sys, "stdin", empty)
        with pytest.raises(ConfigError, match=sentence):
            open_input(*arguments)


def test_the_name_of_a_file_is_no_lede(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "ledes.txt").write_text("a\n")
    (tmp_path / "my ledes.csv").write_text("a\n")
    for name in ("ledes.txt", "./ledes.txt", "my ledes.csv"):
        with pytest.raises(ConfigError, match=f"{name} is a file; .* use --input {name}$"):
            open_input(["Rain fell in Oslo.", name], None, None)
    for name in ("missing.txt", "folder/x.jsonl.gz", "x.xlsx"):
        with pytest.raises(ConfigError, match=f"^{name} is neither a lede nor an existing file"):
            open_input([name], None, None)
    for text in ("Rain fell in Oslo.", "Rain", "missing file.txt"):
        assert isinstance(open_input([text], None, None), TextInput)


# -- which format ------------------------------------------------------------------------------


def test_a_format_that_is_given_goes_before_the_name(tmp_path):
    (tmp_path / "x.txt").write_text("n;lede\n1;a\n")
    given = open_input([], tmp_path / "x.txt", None, "csv")
    assert (given.file_format, given.columns, given.num_rows()) == ("csv", ("n", "lede"), 2)
    assert [one.text for one in given.records(whole=True)] == ["a"]
    given = open_input([], tmp_path / "x.txt", None, "csv", "comma")
    assert given.columns == ("n;lede",)
    (tmp_path / "x.csv").write_text("n;lede\n1;a\n")
    given = open_input([], tmp_path / "x.csv", None, "txt")
    assert [one.text for one in given.records(whole=True)] == ["n;lede", "1;a"]


def test_parquet_by_any_name(tmp_path):
    write_table(tmp_path / "x.parquet", [{"lede": "a"}], ["lede"])
    (tmp_path / "x.parquet").rename(tmp_path / "x")
    given = open_input([], tmp_path / "x", None, "parquet")
    assert (given.columns, given.num_rows()) == (("lede",), 1)
    assert [one.text for one in given.records(whole=True)] == ["a"]
    with pytest.raises(
        CorpusError, match=r"x: this is not a text file; set its format with --format: txt"
    ):
        open_input([], tmp_path / "x", None)


def test_a_file_without_an_ending_is_plain_text(tmp_path):
    (tmp_path / "ledes").write_text("a,b\nc\n")
    given = open_input([], tmp_path / "ledes", None)
    assert (given.file_format, given.num_rows()) == ("txt", 2)
    assert [one.text for one in given.records(whole=True)] == ["a,b", "c"]
    with pytest.raises(CorpusError, match=r"plain text has no column 'b'; .* --format"):
        open_input([], tmp_path / "ledes", "b")
    (tmp_path / "broken.gz").write_bytes(gzip.compress(b"a\nb\n")[:12])
    with pytest.raises(
        CorpusError, match=r"broken\.gz: line 1: the file cannot be read beyond this point"
    ):
        open_input([], tmp_path / "broken.gz", None)
    with pytest.raises(CorpusError, match="none: no such file"):
        open_input([], tmp_path / "none", None)
    with pytest.raises(CorpusError, match="this is a folder"):
        open_input([], tmp_path, None)
