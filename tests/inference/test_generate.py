import csv
import gzip
import json
import os
import signal
import threading
import weakref
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar
from unittest.mock import Mock

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ledeline.core.errors import CorpusError
from ledeline.corpus import InvalidRow
from ledeline.corpus.inputs import FileInput, Input, StreamInput, TextInput
from ledeline.corpus.records import InputLayout, Record, text_record
from ledeline.corpus.table_writer import write_table
from ledeline.inference import generate as generation
from ledeline.inference.generate import CHUNK_GROWTH, GenerateResult, generate, growing_chunks
from ledeline.inference.headline import Candidate, Headline, HeadlineWarning
from ledeline.inference.outputs import RecordResult
from ledeline.inference.outputs.line_formats import JsonLines, PlainLines
from ledeline.inference.outputs.open_output import open_output
from ledeline.inference.outputs.parquet import ParquetTable, journal_path
from ledeline.inference.outputs.reporter import LIMIT, LimitedReporter
from ledeline.inference.outputs.resumable_file import ResumableFile
from ledeline.inference.outputs.standard_output import StandardOutput

TEXT_OUTPUTS = ["out.txt", "out.jsonl", "out.csv", "out.tsv"]
TABLES = ["out.jsonl", "out.csv", "out.tsv", "out.parquet"]


@dataclass
class Fake:
    """Answers with the first words in capitals; a chunk with a word it fails on, by failing."""

    first_chunk_size: ClassVar[int] = 64
    fails_on: str | None = None
    growing_chunks: list[tuple[int, int]] = field(default_factory=list)  # first, length

    def generate_batch(
        self, texts: Sequence[object], options: Any, *, first: int = 1
    ) -> list[Headline]:
        if self.fails_on is not None and self.fails_on in texts:
            raise Killed
        self.growing_chunks.append((first, len(texts)))
        return [self._headline(text, number) for number, text in enumerate(texts, start=first)]

    def _headline(self, text: object, number: int) -> Headline:
        if not isinstance(text, str):
            return Headline(None, "", warnings=(HeadlineWarning("invalid", "ours"),))
        if not text:
            return Headline(text, "", warnings=(HeadlineWarning("empty", f"text {number}"),))
        short = " ".join(text.upper().split()[:2])
        return Headline(text.rstrip("\r\n"), short, tuple(short.split()), -0.25)


class Killed(Exception):
    pass


@dataclass
class Heard:
    """All messages of a run."""

    sentences: list[str] = field(default_factory=list)

    def reporter(self, **choices: bool) -> LimitedReporter:
        choices = {"unlimited": True, "warnings": True} | choices
        return LimitedReporter(self.sentences.append, "line", **choices)


def run(
    given: Input | Path,
    output: Path,
    headliner: Fake | None = None,
    heard: Heard | None = None,
    column: str | None = None,
    **choices: bool,
) -> GenerateResult:
    given = FileInput(given) if isinstance(given, Path) else given
    with (
        open_output(output, given, column, **choices) as target,
        (heard or Heard()).reporter() as reporter,
    ):
        return generate(headliner or Fake(), given, target, None, reporter)  # type: ignore[arg-type]


def written(folder: Path, name: str, data: str | bytes) -> Path:
    path = folder / name
    path.write_bytes(data.encode() if isinstance(data, str) else data)
    return path


@pytest.fixture
def small_windows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Fake, "first_chunk_size", 2)
    monkeypatch.setattr(generation, "CHUNK_GROWTH", 2)


# -- chunks -----------------------------------------------------------------------------------


def some(number: int) -> Iterator[Record]:
    return (text_record(f"text {n}", n) for n in range(1, number + 1))


def test_windows_grow_to_a_bound_and_keep_the_order():
    got = list(growing_chunks(some(10_000), lambda: False, 64))
    sizes = [len(chunk) for chunk in got]
    assert sizes[:6] == [64, 128, 256, 512, 512, 512]
    assert max(sizes) == CHUNK_GROWTH * 64
    assert [record.line for chunk in got for record in chunk] == list(range(1, 10_001))


def test_windows_that_take_long_do_not_grow(monkeypatch):
    seconds = iter([0, 4.9, 10, 14.9, 20, 25, 30, 35] + [40] * 100)
    monkeypatch.setattr(generation.time, "monotonic", lambda: next(seconds))
    sizes = [len(chunk) for chunk in growing_chunks(some(2000), lambda: False, 64)]
    assert sizes[:6] == [64, 128, 256, 256, 256, 512]


def test_no_more_is_read_than_a_window_holds():
    read = 0

    def counting() -> Iterator[Record]:
        nonlocal read
        for record in some(10_000):
            read += 1
            yield record

    given = 0
    for chunk in growing_chunks(counting(), lambda: False, 64):
        given += len(chunk)
        assert read == given


def test_a_window_ends_where_the_next_record_is_not_there():
    records = some(200)
    waiting = iter([False, True] * 100)
    got = list(growing_chunks(records, lambda: next(waiting), 64))
    assert [len(chunk) for chunk in got] == [2] * 100


def test_records_before_a_failure_are_given_first():
    def breaking() -> Iterator[Record]:
        yield from some(3)
        raise CorpusError("the file breaks off")

    got = growing_chunks(breaking(), lambda: False, 64)
    assert len(next(got)) == 3
    with pytest.raises(CorpusError, match="breaks off"):
        next(got)


# -- what is written ---------------------------------------------------------------------------

LEDES = b"one two three\n\nb\xff\nfour five six\n"


def test_plain_lines_are_one_for_each_line(tmp_path):
    heard = Heard()
    given = written(tmp_path, "in.txt", LEDES)
    assert run(given, tmp_path / "out.txt", heard=heard) == GenerateResult(4, None)
    assert (tmp_path / "out.txt").read_text() == "ONE TWO\n\n\nFOUR FIVE\n"
    assert heard.sentences == [
        "line 2: empty: text 2",
        f"{given}: line 3: not UTF-8: byte 0xff at byte 2",
    ]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in.txt", "out.txt"]


def test_json_lines_are_one_for_each_line(tmp_path):
    given = written(tmp_path, "in.txt", LEDES)
    run(given, tmp_path / "out.jsonl", as_json=True)
    first, empty, bad, last = map(json.loads, (tmp_path / "out.jsonl").read_text().splitlines())
    assert first == {
        "source": "one two three",
        "headline": "ONE TWO",
        "score": -0.25,
        "truncated": False,
        "warnings": [],
    }
    assert empty["warnings"] == [{"kind": "empty", "message": "text 2"}]
    reason = f"{given}: line 3: not UTF-8: byte 0xff at byte 2"
    assert bad == {
        "source": None,
        "headline": "",
        "score": None,
        "truncated": False,
        "warnings": [{"kind": "invalid", "message": reason}],
    }
    assert last["headline"] == "FOUR FIVE"


def rows_of(path: Path, delimiter: str = ",") -> list[dict[str, Any]]:
    match path.suffix:
        case ".jsonl":
            return [json.loads(line) for line in path.read_text().splitlines()]
        case ".csv":
            with path.open(newline="") as file:
                return list(csv.DictReader(file, delimiter=delimiter))
        case ".tsv":
            header, *lines = (line.split("\t") for line in path.read_text().splitlines())
            return [dict(zip(header, line, strict=True)) for line in lines]
    return list(pq.read_table(path).to_pylist())


@pytest.mark.parametrize("given", ["in.jsonl", "in.csv", "in.tsv", "in.parquet"])
@pytest.mark.parametrize("output", TABLES)
def test_any_table_becomes_any_table(tmp_path, given, output):
    rows = [{"id": str(n), "lede": f"word{n} word two", "x": 'é "'} for n in range(200)]
    write_table(tmp_path / given, rows, ["id", "lede", "x"])
    run(tmp_path / given, tmp_path / "made" / output)
    assert rows_of(tmp_path / "made" / output) == [
        row | {"headline": f"WORD{n} WORD"} for n, row in enumerate(rows)
    ]
    assert [path.name for path in (tmp_path / "made").iterdir()] == [output]


@pytest.mark.parametrize("output", TABLES)
def test_texts_become_a_table_without_the_bad_rows(tmp_path, output):
    run(written(tmp_path, "in.txt", LEDES), tmp_path / output, column="title")
    expected = [("one two three", "ONE TWO"), ("", ""), ("four five six", "FOUR FIVE")]
    assert [tuple(row.items()) for row in rows_of(tmp_path / output)] == [
        (("source", source), ("title", title)) for source, title in expected
    ]


def stream_of(data: bytes, layout: InputLayout = InputLayout()) -> StreamInput:  # noqa: B008 - cannot change
    reading, writing = os.pipe()
    os.write(writing, data)
    os.close(writing)
    return StreamInput(reading, layout=layout)


@pytest.mark.parametrize("output", TABLES)
def test_a_stream_becomes_a_table(tmp_path, output):
    run(stream_of(b"a b c\nd e f\n"), tmp_path / output)
    assert [row["headline"] for row in rows_of(tmp_path / output)] == ["A B", "D E"]


def test_bad_rows_are_left_out_of_a_table_and_said(tmp_path):
    heard = Heard()
    given = written(tmp_path, "in.csv", b"lede,n\na b c,1\nshort\nd e f,3\n")
    for output in TABLES:
        run(given, tmp_path / output, heard=heard)
        assert [row["n"] for row in rows_of(tmp_path / output)] == ["1", "3"]
    assert heard.sentences == [f"{given}: line 3: 1 field, but the header has 2"] * 4


def test_the_values_of_objects_are_kept(tmp_path):
    lines = [
        '{"lede": "a b c", "n": 1, "x": [1, {"y": null}], "z": 0.1, "s": "\\ud83d"}',
        '{"lede": "d"}',
    ]
    given = written(tmp_path, "in.jsonl", "\n".join(lines))
    run(given, tmp_path / "out.jsonl")
    assert rows_of(tmp_path / "out.jsonl") == [
        json.loads(line) | {"headline": short}
        for line, short in zip(lines, ["A B", "D"], strict=True)
    ]


def test_objects_in_cells(tmp_path):
    lines = ['{"lede": "a b c", "n": 1, "x": [true, "é"], "s": null}', '{"n": 2, "lede": "d"}']
    run(written(tmp_path, "in.jsonl", "\n".join(lines)), tmp_path / "out.csv")
    assert rows_of(tmp_path / "out.csv") == [
        {"lede": "a b c", "n": "1", "x": '[true, "é"]', "s": "", "headline": "A B"},
        {"lede": "d", "n": "2", "x": "", "s": "", "headline": "D"},
    ]


def test_objects_in_parquet_have_the_types_of_all_of_them(tmp_path):
    lines = ['{"lede": "a", "n": 1, "o": null}', '{"lede": "b", "n": 1.5, "o": [1], "late": "x"}']
    run(written(tmp_path, "in.jsonl", "\n".join(lines)), tmp_path / "out.parquet")
    assert rows_of(tmp_path / "out.parquet") == [
        {"lede": "a", "n": 1.0, "o": None, "late": None, "headline": "A"},
        {"lede": "b", "n": 1.5, "o": [1], "late": "x", "headline": "B"},
    ]


def test_parquet_keeps_the_types_of_the_other_columns(tmp_path):
    table = pa.table(
        {
            "time": pa.array([1234567890123456789, None], pa.timestamp("ns")),
            "lede": pa.array(["a b c", None]).dictionary_encode(),
            "data": [b"\xff", None],
            "list": pa.array([[1], None], pa.list_(pa.int8())),
        }
    ).replace_schema_metadata({"made": "by us"})
    pq.write_table(table, tmp_path / "in.parquet")
    run(tmp_path / "in.parquet", tmp_path / "out.parquet")
    made = pq.read_table(tmp_path / "out.parquet")
    assert made.drop_columns(["headline"]).equals(table)
    assert made.schema.metadata[b"made"] == b"by us"
    assert made["headline"].to_pylist() == ["A B", ""]


def test_a_table_without_rows(tmp_path):
    given = written(tmp_path, "in.csv", "id,lede\n")
    for output in TABLES:
        run(given, tmp_path / output)
    assert (tmp_path / "out.jsonl").read_text() == ""
    assert (tmp_path / "out.csv").read_text() == '"id","lede","headline"\n'
    assert (tmp_path / "out.tsv").read_text() == "id\tlede\theadline\n"
    assert pq.read_table(tmp_path / "out.parquet").column_names == ["id", "lede", "headline"]
    run(written(tmp_path, "in.txt", ""), tmp_path / "out.txt")
    assert (tmp_path / "out.txt").read_bytes() == b""


def test_a_headline_with_breaks_is_still_one_line():
    texts = ("a\tb\r\nc", "d")
    headline = Headline("s", texts[0], alternatives=tuple(Candidate(one, (), -1) for one in texts))
    answer = RecordResult(text_record("s", 1), headline)
    assert PlainLines().line(answer) == b"a b  c\td\n"
    assert json.loads(JsonLines().line(answer))["headline"] == texts[0]


def test_half_a_character_is_no_obstacle_to_json(tmp_path):
    run(TextInput(["a \udcff"]), tmp_path / "out.jsonl", as_json=True)
    assert rows_of(tmp_path / "out.jsonl")[0]["source"] == "a \udcff"


# -- tables keep how they are written ----------------------------------------------------------

# As a spreadsheet writes it in most of Europe: a mark, semicolons, CRLF, but LF within a cell.
EXCEL = (
    '\ufeff"id";"the\nlede"\r\n1;one two three\r\n\r\n2;"a;b\n""c""\r\nd"\r\nshort\r\n3;\r\n'
).encode()
EXCEL_MADE = (
    '\ufeff"id";"the\nlede";"headline"\r\n"1";"one two three";"ONE TWO"\r\n'
    '"2";"a;b\n""c""\r\nd";"A;B ""C"""\r\n"3";"";""\r\n'
).encode()


def excel(folder: Path) -> FileInput:
    return FileInput(written(folder, "in.csv", EXCEL), "the\nlede")


def test_csv_keeps_delimiter_mark_and_line_ends(tmp_path):
    heard = Heard()
    run(excel(tmp_path), tmp_path / "out.csv", heard=heard)
    assert (tmp_path / "out.csv").read_bytes() == EXCEL_MADE
    assert "1 field, but the header has 2" in heard.sentences[0]
    run(FileInput(tmp_path / "out.csv", "the\nlede"), tmp_path / "again.csv", column="b")
    assert (tmp_path / "again.csv").read_bytes().startswith(EXCEL_MADE[:20])


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
@pytest.mark.parametrize("mark", ["", "\ufeff"])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_whatever_it_is_a_table_keeps_it(tmp_path, pack, delimiter, mark, end):
    lines = [f"lede{delimiter}n", f"a b c{delimiter}1", ""]
    name = "in.csv" if pack is bytes else "in.csv.gz"
    run(written(tmp_path, name, pack((mark + end.join(lines)).encode())), tmp_path / "out.csv")
    made = [["lede", "n", "headline"], ["a b c", "1", "A B"]]
    rows = [delimiter.join(f'"{cell}"' for cell in row) + end for row in made]
    assert (tmp_path / "out.csv").read_bytes() == (mark + "".join(rows)).encode()


FAMILIES = [
    ("in.csv", "\ufefflede;n\r\na;1\r\n", "out.tsv", "\ufefflede\tn\theadline\r\na\t1\tA\r\n"),
    ("in.tsv", "lede\tn\r\na\t1\r\n", "out.csv", '"lede","n","headline"\r\n"a","1","A"\r\n'),
    ("in.tsv", "\ufefflede\na\n", "out.tsv", "\ufefflede\theadline\na\tA\n"),
    ("in.jsonl", '{"lede": "a"}\r\n', "out.jsonl", '{"lede": "a", "headline": "A"}\r\n'),
    ("in.jsonl", '\ufeff{"lede": "a"}\n', "out.jsonl", '{"lede": "a", "headline": "A"}\n'),
    ("in.jsonl", '\ufeff{"lede": "a"}\r\n', "out.csv", '"lede","headline"\n"a","A"\n'),
    ("in.csv", "\ufefflede\r\na\r\n", "out.jsonl", '{"lede": "a", "headline": "A"}\n'),
    ("in.csv", "\ufefflede\r\na\r\n", "out.txt", "A\n"),
    ("in.txt", "\ufeffa\r\n", "out.csv", '"source","headline"\n"a","A"\n'),
]


@pytest.mark.parametrize(("name", "data", "output", "made"), FAMILIES)
def test_what_is_kept_from_one_format_to_another(tmp_path, name, data, output, made):
    run(written(tmp_path, name, data), tmp_path / output)
    assert (tmp_path / output).read_bytes() == made.encode()


def test_json_is_no_table_and_has_no_mark(tmp_path):
    run(excel(tmp_path), tmp_path / "out.jsonl", as_json=True)
    made = (tmp_path / "out.jsonl").read_bytes()
    assert made.startswith(b'{"source": "one two three"')
    assert b"\r\n" not in made


@pytest.mark.parametrize("output", ["out.jsonl", "out.csv", "out.tsv"])
def test_a_table_from_a_stream(tmp_path, output):
    stream = stream_of(b"id;lede\r\n1;a b c\r\n2\r\n", InputLayout("csv"))
    run(stream, tmp_path / output)
    assert rows_of(tmp_path / output, ";") == [{"id": "1", "lede": "a b c", "headline": "A B"}]


def test_objects_from_a_stream(tmp_path):
    stream = stream_of(b'{"lede": "a", "n": [1]}\n{"lede": "b", "n": 2}\n', InputLayout("jsonl"))
    run(stream, tmp_path / "out.csv")
    assert (tmp_path / "out.csv").read_text() == (
        '"lede","n","headline"\n"a","[1]","A"\n"b","2","B"\n'
    )


def test_a_table_from_a_stream_is_not_read_twice_for_parquet(tmp_path):
    stream = stream_of(b"id,lede\n1,a\n", InputLayout("csv"))
    with pytest.raises(CorpusError, match=r"standard input cannot become Parquet.*write \.jsonl"):
        run(stream, tmp_path / "out.parquet")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("kind", ["csv", "jsonl", "parquet"])
def test_tables_by_any_name_become_parquet(tmp_path, kind):
    rows = [{"id": "1", "lede": "a b c"}]
    write_table(tmp_path / f"in.{kind}", rows, ["id", "lede"])
    (tmp_path / f"in.{kind}").rename(tmp_path / "in")
    run(FileInput(tmp_path / "in", file_format=kind), tmp_path / "out.parquet")
    assert rows_of(tmp_path / "out.parquet") == [rows[0] | {"headline": "A B"}]


# -- chunks, progress and reports ---------------------------------------------------------------


def test_numbers_of_texts_go_on_over_windows_and_bad_rows(tmp_path, small_windows):
    headliner = Fake()
    run(written(tmp_path, "in.txt", b"a\n\xff\nb\nc\nd\ne\nf\n"), tmp_path / "out.txt", headliner)
    assert headliner.growing_chunks == [(1, 2), (3, 4), (7, 1)]


def test_progress_is_told(tmp_path, small_windows):
    told = []
    given = FileInput(written(tmp_path, "in.csv", "lede\na\nb\nc\n"))  # four lines
    with open_output(tmp_path / "out.txt", given) as output, Heard().reporter() as reporter:
        generate(Fake(), given, output, None, reporter, lambda *call: told.append(call))  # type: ignore[arg-type]
    assert told == [("headlines", 2, 4), ("headlines", 3, 4), ("headlines", 3, 3)]


def test_notes_are_limited_each_kind_by_itself():
    heard = Heard()
    with heard.reporter(unlimited=False) as reporter:
        for number in range(1, 31):
            reporter.warning(text_record("", number), HeadlineWarning("cut", "long"))
        reporter.bad_row(InvalidRow("f", 3, "bad", ""))
    assert heard.sentences[:2] == ["line 1: cut: long", "line 2: cut: long"]
    assert heard.sentences[LIMIT:] == ["f: line 3: bad", "and 10 more warnings"]
    assert len(heard.sentences) == LIMIT + 2


def test_warnings_that_the_output_has_are_not_said():
    heard = Heard()
    with heard.reporter(warnings=False) as reporter:
        reporter.warning(text_record("", 1), HeadlineWarning("cut", "long"))
        reporter.bad_row(InvalidRow("f", 3, "bad", ""))
    assert heard.sentences == ["f: line 3: bad"]


def test_answers_that_are_written_are_given_up(tmp_path):
    made: list[weakref.ref[Headline]] = []
    most = 0

    class Counting(Fake):
        def generate_batch(
            self, texts: Sequence[object], options: Any, *, first: int = 1
        ) -> list[Headline]:
            nonlocal most
            answers = super().generate_batch(texts, options, first=first)
            made.extend(map(weakref.ref, answers))
            most = max(most, sum(one() is not None for one in made))
            return answers

    run(written(tmp_path, "in.txt", "a b c\n" * 12_000), tmp_path / "out.txt", Counting())
    assert len(made) == 12_000
    assert most <= 2 * CHUNK_GROWTH * 64


# -- refusals ----------------------------------------------------------------------------------


@pytest.mark.parametrize("output", ["out.txt", *TABLES])
def test_an_output_that_is_there_is_never_overwritten(tmp_path, output):
    given, path = written(tmp_path, "in.txt", "a\n"), written(tmp_path, output, "mine")
    with pytest.raises(CorpusError, match=f"{output} already exists; continue it with --resume"):
        run(given, path)
    assert path.read_text() == "mine"


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("out.doc", r"out\.doc: the name must end in \.txt .*\.parquet"),
        ("out", "the name must end in"),
        ("out.csv.gz", r"cannot be compressed; write .*out\.csv and compress it"),
        ("folder.txt", "is a folder"),
        ("in.txt", "is the input"),
    ],
)
def test_names_that_cannot_be_written_to(tmp_path, name, sentence):
    (tmp_path / "folder.txt").mkdir()
    given = written(tmp_path, "in.txt", "a\n")
    with pytest.raises(CorpusError, match=sentence):
        run(given, tmp_path / name, resume=True)
    assert given.read_text() == "a\n"


def test_json_needs_its_suffix(tmp_path):
    with pytest.raises(CorpusError, match=r"out\.csv: --json writes lines of JSON"):
        run(TextInput(["a"]), tmp_path / "out.csv", as_json=True)


@pytest.mark.parametrize("output", TABLES)
@pytest.mark.parametrize("given", ["in.jsonl", "in.csv", "in.tsv", "in.parquet"])
def test_a_column_that_is_there_is_not_replaced(tmp_path, given, output):
    write_table(tmp_path / given, [{"lede": "a", "headline": "mine"}], ["lede", "headline"])
    with pytest.raises(
        CorpusError, match=f"{given}: the table already has a column 'headline'; .*--column"
    ):
        run(tmp_path / given, tmp_path / output)
    assert not (tmp_path / output).exists()
    run(tmp_path / given, tmp_path / output, column="made")
    assert rows_of(tmp_path / output) == [{"lede": "a", "headline": "mine", "made": "A"}]


MISFITS = [
    ("in.csv", '"lede","n"\na,1\n"b\nc",2\n', "out.tsv", "line 3 has a tab or a line end, which TSV"),
    ("in.csv", '"lede","n\tm"\na,1\n', "out.tsv", "the header has a tab"),
    ("in.csv", "lede,a,a\n1,2,3\n", "out.jsonl", "the column 'a' occurs 2 times"),
    ("in.jsonl", '{"lede": "a"}\n{"lede": "b", "n": 1}', "out.csv", "line 2 has the key 'n', which"),
    ("in.jsonl", '{"lede": "a"}\n{"lede": "\\ud83d"}', "out.csv", "line 2 has half a character"),
    ("in.jsonl", '{"lede": "a"}\n{"lede": "b", "headline": 1}', "out.jsonl", "line 2: the table already has a column"),
    ("in.jsonl", '{"lede": "a"}\n{"lede": "b", "headline": 1}', "out.parquet", "the table already has a column"),
    ("in.jsonl", '{"lede": "a", "n": 1}\n{"lede": "b", "n": "x"}', "out.parquet", "lines 1 to 2: the values of 'n' have"),
    ("in.jsonl", '{"lede": "a", "n": {}}', "out.parquet", "Parquet cannot hold this table"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "data", "output", "sentence"), MISFITS)
def test_what_the_format_cannot_hold_is_found_before_the_work(
    tmp_path, name, data, output, sentence
):
    headliner = Fake()
    with pytest.raises(CorpusError, match=f"{name}: {sentence}"):
        run(written(tmp_path, name, data), tmp_path / output, headliner)
    assert headliner.growing_chunks == []
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_bytes_are_for_parquet_alone(tmp_path):
    pq.write_table(pa.table({"lede": ["a"], "data": [b"x"]}), tmp_path / "in.parquet")
    for output in ("out.csv", "out.tsv", "out.jsonl"):
        with pytest.raises(
            CorpusError, match=r"line 1: the value of 'data' has the type bytes, .*\.parquet"
        ):
            run(tmp_path / "in.parquet", tmp_path / output)


def test_what_tsv_cannot_hold_in_a_stream_stops_after_whole_records(tmp_path):
    given = stream_of(b"a b c\nd e f\ng\th\ni\n")
    with pytest.raises(CorpusError, match="standard input: line 3 has a tab"):
        run(given, tmp_path / "out.tsv")
    assert (tmp_path / "out.tsv").read_text() == "source\theadline\na b c\tA B\nd e f\tD E\n"


def test_two_runs_do_not_write_the_same_output(tmp_path):
    given = TextInput(["a"])
    with (
        open_output(tmp_path / "out.txt", given),
        pytest.raises(CorpusError, match=r"another run is writing .*out\.txt"),
    ):
        run(given, tmp_path / "out.txt")


def test_a_full_disk_leaves_whole_records(tmp_path, monkeypatch):
    output = ResumableFile(tmp_path / "out.txt", PlainLines())
    answer = RecordResult(text_record("a", 1), Headline("a", "A LONG ONE"))
    output.write([answer])
    write = os.write

    def full(descriptor: int, data: bytes) -> int:
        if len(data) < 11:
            raise OSError(28, "No space left on device")
        return write(descriptor, data[:5])

    monkeypatch.setattr(os, "write", full)
    with pytest.raises(OSError, match="No space"):
        output.write([answer])
    output.close()
    assert (tmp_path / "out.txt").read_text() == "A LONG ONE\n"


# -- going on ----------------------------------------------------------------------------------

NASTY = [
    {"lede": 'one "two" three', "x": "é😀"},
    {"lede": "line\nend, and\r\nmore", "x": '"'},
    {"lede": "", "x": ""},
    {"lede": "\u2028 half\n", "x": '""\n"'},
    {"lede": "last, one here", "x": ","},
]


def nasty_input(folder: Path, *, flat: bool) -> Path:
    lines = [json.dumps(row) for row in NASTY]
    if flat:
        lines = [line.replace("\\r", "").replace("\\n", " ") for line in lines]
    lines.insert(2, '{"broken')
    return written(folder, "in.jsonl", "\n".join(lines))


@pytest.mark.parametrize("tail", [b"", b"\0", b"\0" * 5000], ids=["cut", "NUL", "many NULs"])
@pytest.mark.parametrize(
    ("output", "as_json"), [(name, False) for name in TEXT_OUTPUTS] + [("out.jsonl", True)]
)
def test_cut_anywhere_and_resumed_it_is_as_if_never_cut(
    tmp_path, small_windows, output, as_json, tail
):
    given = nasty_input(tmp_path, flat=output == "out.tsv")
    path = tmp_path / output
    run(given, path, as_json=as_json)
    whole = path.read_bytes()
    assert whole.count(b"\n") >= 5
    for length in range(len(whole) + 1):
        path.write_bytes(whole[:length] + tail)  # NULs are what a crash of the machine leaves
        run(given, path, as_json=as_json, resume=True)
        assert path.read_bytes() == whole, length


def test_nuls_that_are_not_at_the_end_are_not_from_this_input(tmp_path):
    given = nasty_input(tmp_path, flat=False)
    path = tmp_path / "out.jsonl"
    run(given, path)
    whole = path.read_bytes()
    for broken in (b"\0" * 9 + whole, whole[:-9] + b"\0" * 9 + b"\n", b"x" + b"\0" * 9):
        path.write_bytes(broken)
        with pytest.raises(CorpusError, match="not from this input"):
            run(given, path, resume=True)
        assert path.read_bytes() == broken


@pytest.mark.parametrize("output", ["out.csv", "out.tsv", "out.jsonl"])
def test_marks_and_line_ends_cut_anywhere_are_as_if_never_cut(tmp_path, small_windows, output):
    lines = ["id;lede;x\r\n", *(f"{n};word{n} é;{n}\r\n" for n in range(5)), "short\r\n"]
    given = written(tmp_path, "in.csv", "\ufeff" + "".join(lines))
    if output == "out.jsonl":
        given = written(tmp_path, "in.jsonl", '{"lede": "é"}\r\n' * 4)
    run(given, tmp_path / output)
    whole = (tmp_path / output).read_bytes()
    assert whole.count(b"\r\n") == whole.count(b"\n") >= 4
    for length in range(len(whole) + 1):
        (tmp_path / output).write_bytes(whole[:length])
        run(given, tmp_path / output, resume=True)
        assert (tmp_path / output).read_bytes() == whole, length


def test_quoted_line_ends_cut_anywhere_are_as_if_never_cut(tmp_path, small_windows):
    path = tmp_path / "out.csv"
    for length in range(len(EXCEL_MADE) + 1):
        path.write_bytes(EXCEL_MADE[:length])
        run(excel(tmp_path), path, resume=True)
        assert path.read_bytes() == EXCEL_MADE, length


@pytest.mark.parametrize(
    "other", [EXCEL[3:], EXCEL.replace(b"\r\n", b"\n"), EXCEL.replace(b";", b",")]
)
def test_an_output_that_is_written_otherwise_is_left_alone(tmp_path, other):
    path = written(tmp_path, "out.csv", EXCEL_MADE)
    given = FileInput(written(tmp_path, "in.csv", other), "the\nlede")
    with pytest.raises(CorpusError, match="has a header that is not from this input"):
        run(given, path, resume=True)
    assert path.read_bytes() == EXCEL_MADE


def test_a_stream_of_csv_is_gone_on_with(tmp_path):
    layout = InputLayout("csv")
    run(stream_of(b"lede;n\r\na;1\r\n", layout), tmp_path / "out.csv")
    run(stream_of(b"lede;n\r\na;1\r\nb;2\r\n", layout), tmp_path / "out.csv", resume=True)
    assert (tmp_path / "out.csv").read_bytes() == (
        b'"lede";"n";"headline"\r\n"a";"1";"A"\r\n"b";"2";"B"\r\n'
    )


def test_a_journal_cut_anywhere_gives_the_same_table(tmp_path, small_windows, monkeypatch):
    given, path = nasty_input(tmp_path, flat=False), tmp_path / "out.parquet"
    run(given, path)
    whole = pq.read_table(path)
    assert len(whole) == len(NASTY)
    path.unlink()
    with monkeypatch.context() as patch:
        patch.setattr(ParquetTable, "_write_table", Mock(side_effect=Killed))
        with pytest.raises(Killed):
            run(given, path)
    journal = journal_path(path).read_bytes()
    assert journal.count(b"\n") == len(NASTY)
    for length in range(len(journal) + 1):
        path.unlink(missing_ok=True)
        journal_path(path).write_bytes(journal[:length])
        run(given, path, resume=True)
        assert pq.read_table(path).equals(whole), length
        assert not journal_path(path).exists()


@pytest.mark.parametrize("output", ["out.txt", *TABLES])
def test_only_what_is_missing_is_done(tmp_path, small_windows, output):
    given = written(tmp_path, "in.txt", b"a\nb\n\xff\nc\nd\ne\nf\ng\nh\n")
    with pytest.raises(Killed):
        run(given, tmp_path / output, Fake(fails_on="g"))
    with pytest.raises(CorpusError, match="continue it with --resume"):
        run(given, tmp_path / output)
    headliner = Fake()
    assert run(given, tmp_path / output, headliner, resume=True) == GenerateResult(9, None)
    assert headliner.growing_chunks == [(7, 2), (9, 1)]
    run(given, tmp_path / "again" / output)
    assert (tmp_path / output).read_bytes() == (tmp_path / "again" / output).read_bytes()


@pytest.mark.parametrize("output", ["out.txt", *TABLES])
def test_resume_without_an_output_begins_and_with_a_whole_one_ends(tmp_path, output):
    given = written(tmp_path, "in.txt", "a\nb\n")
    headliner = Fake()
    run(given, tmp_path / output, headliner, resume=True)
    before = (tmp_path / output).read_bytes()
    assert run(given, tmp_path / output, headliner, resume=True) == GenerateResult(2, None)
    assert (tmp_path / output).read_bytes() == before
    assert headliner.growing_chunks == [(1, 2)]


def test_a_stream_is_gone_on_with(tmp_path):
    run(stream_of(b"a\nb\n"), tmp_path / "out.txt")
    run(stream_of(b"a\nb\nc\nd\n"), tmp_path / "out.txt", resume=True)
    assert (tmp_path / "out.txt").read_text() == "A\nB\nC\nD\n"


@pytest.mark.parametrize("output", ["out.txt", *TABLES])
def test_more_records_than_the_input_has(tmp_path, output):
    run(TextInput(["a", "b", "c"]), tmp_path / output)
    before = (tmp_path / output).read_bytes()
    with pytest.raises(CorpusError, match=f"{output} has .*--resume cannot continue it"):
        run(TextInput(["a", "b"]), tmp_path / output, resume=True)
    assert (tmp_path / output).read_bytes() == before


@pytest.mark.parametrize("torn", [0, 1, 3])
@pytest.mark.parametrize("output", TEXT_OUTPUTS[1:])
def test_an_output_of_another_input_is_left_alone(tmp_path, output, torn):
    path = tmp_path / output
    run(TextInput(["a", "b"]), path)
    path.write_bytes(path.read_bytes()[: -torn or None])
    before = path.read_bytes()
    for others, column in ((["a", "x"], None), (["x", "b"], None), (["a", "b"], "title")):
        with pytest.raises(CorpusError, match="not from this input"):
            run(TextInput(others), path, column=column, resume=True)
        assert path.read_bytes() == before


def test_json_of_another_input_is_left_alone(tmp_path):
    run(TextInput(["a", "b"]), tmp_path / "out.jsonl", as_json=True)
    with pytest.raises(CorpusError, match="has a record 2 that is not from this input"):
        run(TextInput(["a", "bb"]), tmp_path / "out.jsonl", as_json=True, resume=True)
    with pytest.raises(CorpusError, match="has a record 1 that is not from this input"):
        run(TextInput(["a", "b"]), tmp_path / "out.jsonl", resume=True)
    run(TextInput(["a", "b"]), tmp_path / "table.jsonl")
    with pytest.raises(CorpusError, match="has a record 1 that is not from this input"):
        run(TextInput(["a", "b"]), tmp_path / "table.jsonl", as_json=True, resume=True)


def test_a_file_of_another_kind_is_left_alone(tmp_path):
    for name in ("out.jsonl", "out.csv", "out.tsv", "out.parquet"):
        path = written(tmp_path, name, "precious reporter without a line end")
        with pytest.raises(CorpusError, match=r"not from this input|not a valid Parquet file"):
            run(TextInput(["a", "b"]), path, resume=True)
        assert path.read_text() == "precious reporter without a line end"


def test_a_parquet_input_that_changed_is_said(tmp_path, small_windows):
    given, path = tmp_path / "in.csv", tmp_path / "out.parquet"
    written(tmp_path, "in.csv", "lede\na\nb\nc\n")

    class Changing(Fake):
        def generate_batch(
            self, texts: Sequence[object], options: Any, *, first: int = 1
        ) -> list[Headline]:
            given.write_text("lede\na\nb\n")
            return super().generate_batch(texts, options, first=first)

    with pytest.raises(CorpusError, match=r"in\.csv changed while it was read.*partial\.jsonl"):
        run(given, path, Changing())
    assert not path.exists()
    assert journal_path(path).exists()


# -- signals -----------------------------------------------------------------------------------


class Signalling(Fake):
    """Sends itself a signal when it meets a text."""

    number = signal.SIGTERM

    def generate_batch(
        self, texts: Sequence[object], options: Any, *, first: int = 1
    ) -> list[Headline]:
        if "c" in texts:
            os.kill(os.getpid(), self.number)
        return super().generate_batch(texts, options, first=first)


@pytest.fixture
def ctrl_c() -> Iterator[None]:
    """Ctrl-C is heard also where the tests run in the background of a shell."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("ctrl_c")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_while_answering_stops_with_what_is_written(tmp_path, small_windows, number):
    given, headliner = TextInput(["a", "b", "c", "d"]), Signalling()
    headliner.number = number
    before = signal.getsignal(number)
    assert run(given, tmp_path / "out.csv", headliner) == GenerateResult(2, number)
    assert [row["headline"] for row in rows_of(tmp_path / "out.csv")] == ["A", "B"]
    assert signal.getsignal(number) is before
    assert run(given, tmp_path / "out.csv", resume=True) == GenerateResult(4, None)


def test_a_signal_while_writing_waits_for_the_end_of_it(tmp_path, small_windows, monkeypatch):
    write, calls = os.write, []

    def slow(descriptor: int, data: bytes) -> int:
        calls.append(len(data))
        if len(calls) == 2:
            os.kill(os.getpid(), signal.SIGTERM)
        return write(descriptor, bytes(data[:3]))

    monkeypatch.setattr(os, "write", slow)
    outcome = run(TextInput(["a b", "c d", "e f"]), tmp_path / "out.txt")
    assert outcome == GenerateResult(2, signal.SIGTERM)
    assert (tmp_path / "out.txt").read_text() == "A B\nC D\n"


def test_a_signal_that_is_ignored_stays_so(tmp_path, small_windows):
    before = signal.signal(signal.SIGTERM, signal.SIG_IGN)
    try:
        assert run(
            TextInput(["a", "b", "c"]), tmp_path / "out.txt", Signalling()
        ) == GenerateResult(3, None)
    finally:
        signal.signal(signal.SIGTERM, before)


@pytest.mark.usefixtures("ctrl_c")
def test_a_signal_ends_the_waiting_for_input(tmp_path):
    reading, writing = os.pipe()
    os.write(writing, b"a\nb\n")
    timer = threading.Timer(0.5, os.kill, [os.getpid(), signal.SIGINT])
    timer.start()
    assert run(StreamInput(reading), tmp_path / "out.txt") == GenerateResult(2, signal.SIGINT)
    timer.join()
    os.close(writing)
    assert (tmp_path / "out.txt").read_text() == "A\nB\n"


# -- standard output ---------------------------------------------------------------------------


def test_standard_output_is_flushed_with_each_window():
    reading, writing = os.pipe()
    with os.fdopen(writing, "wb") as stream:
        output = StandardOutput(stream, PlainLines().line)
        output.write([RecordResult(text_record("a", 1), Headline("a", "A"))])
        assert os.read(reading, 100) == b"A\n"
