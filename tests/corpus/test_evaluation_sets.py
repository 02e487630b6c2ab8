"""Test sets from tables and parallel text."""

from pathlib import Path

import pytest

from ledeline.core.errors import ConfigError, CorpusError
from ledeline.corpus.evaluation_sets import parse_evaluation_set, read_evaluation_set
from ledeline.corpus.table_writer import write_table
from ledeline.synth.newsroom import Story, generate


@pytest.mark.parametrize(
    ("given", "name", "files"),
    [
        ("news=a/test.parquet", "news", ["a/test.parquet"]),
        ("a/test.parquet", "test", ["a/test.parquet"]),
        ("rush=r.article.txt,r.title.txt", "rush", ["r.article.txt", "r.title.txt"]),
        ("a/rush-test.article.txt,b.txt", "rush-test", ["a/rush-test.article.txt", "b.txt"]),
    ],
)
def test_names(given: str, name: str, files: list[str]) -> None:
    assert parse_evaluation_set(given) == (name, tuple(map(Path, files)))


@pytest.mark.parametrize(
    "given",
    [
        "a=b,c,d",
        "a=",
        "a=b,",
        "../x=t.csv",
        "=b/.csv",
        "a b=t.csv",
        ".x=t.csv",
        "-x=t.csv",
        f"{'x' * 65}=t.csv",
    ],
)
def test_what_is_no_test_set(given: str) -> None:
    with pytest.raises(ConfigError, match="NAME="):
        parse_evaluation_set(given)


def test_a_file_that_has_marks_in_its_name(tmp_path: Path) -> None:
    path = tmp_path / "a=b,c.csv"
    path.write_text("lede,headline\nx,y\n")
    assert parse_evaluation_set(f"n={path}") == ("n", (path,))
    with pytest.raises(ConfigError, match="'a=b,c' is not a name"):
        parse_evaluation_set(str(path))


def test_a_table_with_gold(tmp_path: Path) -> None:
    stories = list(generate(5, 1))
    path = tmp_path / "t.parquet"
    write_table(path, (story._asdict() for story in stories), Story._fields)
    held_out = read_evaluation_set(f"room={path}")
    assert held_out.name == "room"
    assert held_out.files == (str(path),)
    assert held_out.ledes == [story.lede for story in stories]
    assert held_out.headlines == [story.headline for story in stories]
    assert held_out.alignments == [story.alignment for story in stories]
    assert held_out.gold_file == str(path)


def test_parallel_text_with_gold_beside_it(tmp_path: Path) -> None:
    for name, text in {"l.txt": "a b\nc d\n", "h.txt": "a\n\n", "g.txt": "0-0\n\n"}.items():
        (tmp_path / name).write_text(text)
    given = f"{tmp_path / 'l.txt'},{tmp_path / 'h.txt'}"
    held_out = read_evaluation_set(given)
    assert (held_out.ledes, held_out.headlines) == (["a b", "c d"], ["a", ""])
    assert held_out.alignments is None
    assert read_evaluation_set(given, gold=str(tmp_path / "g.txt")).alignments == ["0-0", ""]


def test_columns_of_other_names(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("body,title\nx,y\n")
    held_out = read_evaluation_set(str(tmp_path / "t.csv"), lede="body", headline="title")
    assert (held_out.ledes, held_out.headlines) == (["x"], ["y"])


def test_every_row_must_be_a_pair(tmp_path: Path) -> None:
    (tmp_path / "t.jsonl").write_text('{"lede": "a", "headline": "b"}\n{"lede": "a"}\n')
    (tmp_path / "none.csv").write_text("lede,headline\n")
    (tmp_path / "l.txt").write_text("a\nb\n")
    (tmp_path / "h.txt").write_text("a\n")
    for given, sentence in [
        ("t.jsonl", r"t\.jsonl: line 2: "),
        ("none.csv", "the file has no pairs"),
        ("missing.csv", "no such file"),
        (f"l.txt,{tmp_path / 'h.txt'}", r"l\.txt: line 2: this line has no counterpart"),
    ]:
        with pytest.raises(CorpusError, match=sentence):
            read_evaluation_set(str(tmp_path / given))


def test_a_table_with_semicolons_is_a_test_set(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes(b"\xef\xbb\xbflede;headline;alignment\r\na, b;c;0-0\r\n")
    held_out = read_evaluation_set(str(path))
    assert (held_out.pairs, held_out.alignments) == ([("a, b", "c")], ["0-0"])
