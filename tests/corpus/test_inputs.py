import os
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from ledeline.corpus.inputs import File, Stream, Texts, find_input
from ledeline.corpus.lines import LINE_LIMIT_BYTES
from ledeline.corpus.records import Record
from ledeline.errors import ConfigError, CorpusError


@pytest.fixture
def pipe() -> Iterator[tuple[Stream, int]]:
    reading, writing = os.pipe()
    yield Stream(reading), writing
    os.close(reading)


def test_a_stream_gives_lines_once_they_are_whole(pipe):
    stream, writing = pipe
    records = stream.records(whole=True)
    os.write(writing, b"\xef\xbb\xbfone\r\ntwo\nthr")
    assert next(records) == Record("one", 1, ("source",), ("one",))
    assert not stream.waits()
    assert next(records).text == "two"
    assert stream.waits()
    os.write(writing, b"e")
    assert stream.waits(), "half a line is no line"
    os.write(writing, b"e\n\n")
    assert not stream.waits()
    assert [next(records).text, next(records).text] == ["three", ""]
    assert stream.waits()
    os.write(writing, b"\xff\nlast")
    os.close(writing)
    assert not stream.waits()
    bad, last = records
    assert str(bad) == "standard input: line 5: not UTF-8: byte 0xff at byte 1"
    assert (last.text, last.line) == ("last", 6)
    assert not stream.waits(), "an end is nothing to wait for"


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
        records = Stream(endless.fileno()).records(whole=True)
        with pytest.raises(CorpusError, match=f"line 1: .*longer than {LINE_LIMIT_BYTES:,} bytes"):
            next(records)


def test_texts_are_numbered():
    texts = Texts(["a", ""])
    assert [(one.text, one.line) for one in texts.records(whole=True)] == [("a", 1), ("", 2)]
    assert not texts.waits()


def test_which_input(tmp_path, monkeypatch):
    (tmp_path / "x.txt").write_text("a\n")
    assert isinstance(find_input([], tmp_path / "x.txt", None), File)
    assert isinstance(find_input(["a", "-"], None, None), Texts)
    with Path("/dev/null").open() as empty:
        monkeypatch.setattr(sys, "stdin", empty)
        for given in (
            find_input([], None, None),
            find_input(["-"], None, None),
            find_input([], Path("-"), None),
        ):
            assert isinstance(given, Stream)
            assert not given.is_typed
    monkeypatch.setattr(sys, "stdin", None)
    with pytest.raises(ConfigError, match="standard input is closed"):
        find_input([], None, None)


def test_a_pipe_with_a_name_is_refused_for_files_are_read_twice(tmp_path):
    os.mkfifo(tmp_path / "x.txt")
    with pytest.raises(CorpusError, match=r"x\.txt is a pipe or a device; give it as standard"):
        find_input([], tmp_path / "x.txt", None)


def test_inputs_at_odds(tmp_path):
    with pytest.raises(ConfigError, match="leave one of them out"):
        find_input(["a"], tmp_path / "x.txt", None)
    with pytest.raises(ConfigError, match="--field lede: only a table has columns"):
        find_input(["a"], None, "lede")
