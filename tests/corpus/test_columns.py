"""Texts to compare: lines of any file, columns of tables."""

from pathlib import Path

import pytest

from ledeline.core.errors import CorpusError
from ledeline.corpus.columns import read_column, read_parallel_columns
from ledeline.corpus.table_writer import write_table


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "t.jsonl"
    rows = [{"headline": "a b", "written": "c"}, {"headline": "", "written": "d"}]
    write_table(path, rows, ["headline", "written"])
    return path


@pytest.mark.parametrize("name", ["out.txt", "out", "out.pred", "system.1"])
def test_a_file_of_any_name_is_read_by_lines(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes("one\u2028more\x85\x0c\n\nlast, no end".encode())
    assert read_column(str(tmp_path / name), "headline") == [
        "one\u2028more\x85\x0c",
        "",
        "last, no end",
    ]


def test_what_is_not_utf8_is_no_reason_to_stop(tmp_path: Path) -> None:
    (tmp_path / "out.txt").write_bytes(b"caf\xe9 opens\n")
    assert read_column(str(tmp_path / "out.txt"), "headline") == ["caf\udce9 opens"]


def test_packed_lines(tmp_path: Path) -> None:
    import gzip

    (tmp_path / "out.txt.gz").write_bytes(gzip.compress(b"a\nb\n"))
    assert read_column(str(tmp_path / "out.txt.gz"), "headline") == ["a", "b"]


@pytest.mark.parametrize("suffix", [".jsonl", ".csv", ".tsv", ".parquet"])
def test_columns_of_tables(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"t{suffix}"
    rows = [{"headline": "a b", "written": "c"}, {"headline": "e", "written": "d"}]
    write_table(path, rows, ["headline", "written"])
    assert read_column(str(path), "headline") == ["a b", "e"]
    assert read_column(f"{path}:written", "headline") == ["c", "d"]


def test_a_file_that_has_a_colon_in_its_name(tmp_path: Path) -> None:
    (tmp_path / "a:b").write_text("x\n")
    assert read_column(str(tmp_path / "a:b"), "headline") == ["x"]


def test_what_cannot_be_read_is_named(tmp_path: Path, table: Path) -> None:
    lines = tmp_path / "out.txt"
    lines.write_text("")
    (tmp_path / "bad.jsonl").write_text('{"headline": "a"}\n{"headline": 3}\n')
    for name, sentence in [
        (lines, "out.txt: the file is empty"),
        (f"{lines}:x", "is read line by line and has no column 'x'"),
        (tmp_path / "none.txt", "none.txt: no such file"),
        (f"{table}:witten", r"no column 'witten' \(the nearest is 'written'\)"),
        (tmp_path / "bad.jsonl", "bad.jsonl: line 2: "),
        (tmp_path, "this is a folder"),
    ]:
        with pytest.raises(CorpusError, match=sentence):
            read_column(str(name), "headline")


def test_files_that_belong_together_are_equally_long(tmp_path: Path, table: Path) -> None:
    (tmp_path / "out.txt").write_text("a\nb\nc\n")
    (tmp_path / "ref.txt").write_text("a\nb\nd\n")
    names = [(str(tmp_path / name), "headline") for name in ("out.txt", "ref.txt")]
    assert read_parallel_columns(names) == [["a", "b", "c"], ["a", "b", "d"]]
    with pytest.raises(CorpusError, match=r"out\.txt has 3 lines and .*t\.jsonl has 2"):
        read_parallel_columns([*names, (str(table), "headline")])


def test_columns_and_colons(tmp_path: Path) -> None:
    folder = tmp_path / "a:b"
    folder.mkdir()
    (folder / "t.csv").write_text("headline,written\nx,y\n")
    assert read_column(f"{folder / 't.csv'}:written", "headline") == ["y"]
    (tmp_path / "none.csv").write_text("headline\n")
    with pytest.raises(CorpusError, match="the file is empty"):
        read_column(str(tmp_path / "none.csv"), "headline")


def test_a_column_between_semicolons(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("id;headline\n1;a, b\n")
    assert read_column(f"{tmp_path / 't.csv'}:id", "headline") == ["1"]
    assert read_column(str(tmp_path / "t.csv"), "headline") == ["a, b"]
