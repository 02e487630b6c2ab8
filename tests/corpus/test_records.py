import datetime
import gzip
import json
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ledeline.core.errors import CorpusError
from ledeline.corpus import InvalidRow, lines
from ledeline.corpus.delimited import Dialect
from ledeline.corpus.records import (
    InputLayout,
    Record,
    read_batches,
    read_column_names,
    read_header,
    read_records,
    read_schema,
)
from ledeline.corpus.table_writer import write_table

TABLES = ["x.csv", "x.tsv", "x.jsonl", "x.parquet"]


def written(folder: Path, name: str, data: str | bytes) -> Path:
    path = folder / name
    path.write_bytes(data.encode() if isinstance(data, str) else data)
    return path


def read(path: Path, field: str | None = None) -> list[Record | InvalidRow]:
    return list(read_records(path, field))


def texts(path: Path, field: str | None = None) -> list[tuple[int, str | None]]:
    rows = read_records(path, field)
    return [(row.line, row.text if isinstance(row, Record) else None) for row in rows]


def reasons(path: Path, field: str | None = None) -> list[str]:
    return [row.reason for row in read(path, field) if isinstance(row, InvalidRow)]


# -- texts -------------------------------------------------------------------------------------


@pytest.mark.parametrize("suffix", ["", ".gz", ".zst"])
def test_a_line_of_text_is_a_record_also_an_empty_one(tmp_path, suffix):
    pack = {"": bytes, ".gz": gzip.compress, ".zst": pa.Codec("zstd").compress}[suffix]
    path = written(tmp_path, f"x.txt{suffix}", bytes(pack(b"a b\n\r\n\nb\xff\r\nlast\xc2\x85\r")))
    assert texts(path) == [(1, "a b"), (2, ""), (3, ""), (4, None), (5, "last\x85")]
    assert read(path)[0] == Record("a b", 1, ("source",), ("a b",))
    assert reasons(path) == ["not UTF-8: byte 0xff at byte 2"]
    assert read_column_names(path, None) == ("source",)


def test_an_empty_file_of_lines_has_no_records(tmp_path):
    assert read(written(tmp_path, "x.txt", "")) == []
    assert read_column_names(tmp_path / "x.txt", None) == ("source",)
    assert read(written(tmp_path, "x.jsonl", "")) == []
    assert read_column_names(tmp_path / "x.jsonl", None) == ()


def test_a_text_file_has_no_fields(tmp_path):
    with pytest.raises(CorpusError, match=r"x\.txt: plain text has no column 'lede'; leave"):
        read(written(tmp_path, "x.txt", "a"), "lede")


# -- what is wrong with a file as a whole ------------------------------------------------------


@pytest.mark.parametrize("name", ["x.txt", *TABLES, "x.csv.gz"])
@pytest.mark.parametrize("action", [read, lambda path: read_column_names(path, None)])
def test_a_missing_file_is_named(tmp_path, name, action):
    with pytest.raises(CorpusError, match=f"{name}: no such file"):
        action(tmp_path / name)


@pytest.mark.parametrize("name", ["x.doc", "x.JSON", "x.xlsx", "x.ndjson.gz"])
def test_what_is_no_text_by_its_name_is_refused(tmp_path, name):
    with pytest.raises(
        CorpusError, match=r"is not supported; save it as \.txt, .*, or set its format"
    ):
        read(written(tmp_path, name, "a"))


@pytest.mark.parametrize("name", ["x", "x.text", "ledes.2024-05-12", "x.gz"])
def test_other_names_are_of_plain_text(tmp_path, name):
    data = b"a b\nc\n"
    path = written(tmp_path, name, gzip.compress(data) if name == "x.gz" else data)
    assert texts(path) == [(1, "a b"), (2, "c")]


@pytest.mark.parametrize("name", ["x.csv", "x.tsv", "x.parquet"])
def test_an_empty_table_is_an_error(tmp_path, name):
    path = written(tmp_path, name, "")
    for action in (read, lambda path: read_column_names(path, None)):
        with pytest.raises(CorpusError, match=f"{name}: the file is empty"):
            action(path)


def test_what_breaks_off_gives_the_records_before_it(tmp_path):
    packed = gzip.compress(b"a\nb\n") + b"rubbish"
    records = read_records(written(tmp_path, "x.txt.gz", packed), None)
    assert [next(records).text, next(records).text] == ["a", "b"]
    with pytest.raises(
        CorpusError, match=r"x\.txt\.gz: line 3: the file cannot be read beyond this point"
    ):
        next(records)


@pytest.mark.parametrize("header", [b"\n\n", b"lede\xff,a\n"])
def test_a_header_that_cannot_be_read(tmp_path, header):
    path = written(tmp_path, "x.csv", header)
    for action in (read, lambda path: read_column_names(path, None)):
        with pytest.raises(CorpusError, match=r"no header row|line 1: .*not UTF-8"):
            action(path)


def test_broken_parquet(tmp_path):
    path = written(tmp_path, "x.parquet", "rubbish " * 10)
    with pytest.raises(CorpusError, match=r"x\.parquet: not a valid Parquet file"):
        read(path)


# -- which column ------------------------------------------------------------------------------


@pytest.mark.parametrize("name", TABLES)
@pytest.mark.parametrize(
    ("columns", "field", "chosen"),
    [
        (["id", "lede"], None, "lede"),
        (["story"], None, "story"),
        (["id", "lede"], "id", "id"),
    ],
)
def test_the_column_of_the_texts(tmp_path, name, columns, field, chosen):
    path = tmp_path / name
    write_table(path, [{column: f"the {column}" for column in columns}], columns)
    (record,) = read(path, field)
    assert record.text == f"the {chosen}"
    assert record.columns == read_column_names(path, field) == tuple(columns)
    assert list(record.values) == [f"the {column}" for column in columns]


@pytest.mark.parametrize("name", TABLES)
@pytest.mark.parametrize("action", [read, read_column_names])
def test_a_column_that_is_not_clear(tmp_path, name, action):
    path = tmp_path / name
    write_table(path, [{"id": "1", "story": "s"}], ["id", "story"])
    with pytest.raises(
        CorpusError, match=rf"{name}: no column is called 'lede'.*--field.*'id', 's"
    ):
        action(path, None)
    with pytest.raises(CorpusError, match=rf"{name}: there is no column 'storey' \(the nearest"):
        action(path, "storey")


@pytest.mark.parametrize("name", ["x.csv", "x.tsv"])
def test_other_columns_may_be_there_twice_but_not_the_texts(tmp_path, name):
    header = "lede,a,a\n1,2,3\n".replace(",", "," if name == "x.csv" else "\t")
    (record,) = read(written(tmp_path, name, header))
    assert list(record.values) == ["1", "2", "3"]
    with pytest.raises(CorpusError, match="'a' occurs 2 times"):
        read(tmp_path / name, "a")


@pytest.mark.parametrize("delimiter", [";", "\t", "|"])
def test_the_delimiter_of_csv_is_found_by_the_column(tmp_path, delimiter):
    path = written(tmp_path, "x.csv", "id,lede\n1,a\n".replace(",", delimiter))
    (record,) = read(path)
    assert (record.text, record.columns) == ("a", ("id", "lede"))
    (record,) = read(path, "id")
    assert record.text == "1"
    layout = InputLayout("csv", None, ",")
    (record,) = read_records(path, None, layout=layout)
    assert record.values == [f"1{delimiter}a"]


@pytest.mark.parametrize("data", ["id;story\n1;a\n", "story | 2024\na\n"])
def test_a_header_that_may_be_one_column_or_several_is_not_guessed_at(tmp_path, data):
    path = written(tmp_path, "x.csv", data)
    for action in (read, lambda path: read_column_names(path, None)):
        with pytest.raises(
            CorpusError, match=r"name the .* --field .*, between .*; if .* wrong, set --delimiter"
        ):
            action(path)
    header = data.partition("\n")[0]
    assert read_column_names(path, header) == (header,)


@pytest.mark.parametrize("data", ['"a;b"\nx;y\n', "story\nx;y\n", "the story\nx;y|z\n"])
def test_a_single_column_is_a_single_column(tmp_path, data):
    (record,) = read(written(tmp_path, "x.csv", data))
    assert record.text == data.split("\n")[1]


def test_a_delimiter_that_is_not_clear(tmp_path):
    with pytest.raises(
        CorpusError, match=r"line 1: the delimiter is ambiguous.*; set it with --delim"
    ):
        read(written(tmp_path, "x.csv", "lede;x|lede\n1;2|3\n"))


# -- how lines are written ---------------------------------------------------------------------

MARK = "\ufeff"
HEADS = [
    ("x.csv", 'id,lede\r\n1,"a\n"\n', Dialect(",", "\r\n")),
    ("x.csv", "\ufeffid|lede\n1|a\r\n", Dialect("|", "\n", MARK)),
    ("x.tsv", "\ufeffid\tlede\r\n", Dialect("\t", "\r\n", MARK)),
    ("x.jsonl", '\ufeff{"lede": "a"}\r\n', Dialect(",", "\r\n", MARK)),
    ("x.jsonl", "", Dialect()),
    ("x.txt", "a\r\n", Dialect()),
]


@pytest.mark.parametrize(("name", "data", "dialect"), HEADS)
@pytest.mark.parametrize("block", [1, 1 << 20])
def test_how_lines_are_written(tmp_path, monkeypatch, name, data, dialect, block):
    monkeypatch.setattr(lines, "BLOCK_BYTES", block)  # a mark may come in pieces
    kind = name.removeprefix("x.")
    assert read_header(written(tmp_path, name, data), InputLayout(kind))[1] == dialect


def test_the_layout_goes_before_the_name(tmp_path):
    path = written(tmp_path, "x.txt", "id;lede\n1;a\n")
    assert [one.text for one in read_records(path, None, layout=InputLayout("csv"))] == ["a"]


# -- rows --------------------------------------------------------------------------------------


def test_bad_rows_of_csv_do_not_stop_the_reader(tmp_path):
    data = b'lede,n\n"a\nb",1\nshort\n\nc\xff,2\n"q"r,3\nd,4\n'
    path = written(tmp_path, "x.csv", data)
    assert texts(path) == [(2, "a\nb"), (4, None), (6, None), (7, None), (8, "d")]
    assert reasons(path)[0] == "1 field, but the header has 2"
    assert str(read(path)[1]) == f"{path}: line 4: 1 field, but the header has 2"


def test_bad_rows_of_tsv_do_not_stop_the_reader(tmp_path):
    path = written(tmp_path, "x.tsv", b'n\tlede\n1\t"a\nshort\n2\t\xff\n3\t\n')
    assert texts(path) == [(2, '"a'), (3, None), (4, None), (5, "")]


def test_bad_rows_of_jsonl_do_not_stop_the_reader(tmp_path):
    lines = [
        "[1]",
        '{"lede": "a", "n": [1, {"m": null}], "x": 1.5}',
        "",
        "{",
        '{"lede": null}',
        '{"lede": 7}',
        '{"n": "b"}',
        '{"lede": "\\ud83d"}',
    ]
    path = written(tmp_path, "x.jsonl", "\n".join(lines).encode() + b"\n\xff\n")
    assert texts(path) == [
        (1, None),
        (2, "a"),
        (4, None),
        (5, ""),
        (6, None),
        (7, None),
        (8, "\ud83d"),
        (9, None),
    ]
    assert read(path)[1].values == ("a", [1, {"m": None}], 1.5)
    assert reasons(path)[3].startswith("there is no column 'lede'")
    assert reasons(path)[2] == "the value of 'lede' is a number but must be a string"


# -- Parquet -----------------------------------------------------------------------------------


def parquet(folder: Path, **columns: object) -> Path:
    pq.write_table(pa.table(columns), folder / "x.parquet", row_group_size=2)
    return folder / "x.parquet"


NOT_UTF8 = pa.Array.from_buffers(
    pa.string(),
    3,
    [
        None,
        pa.py_buffer(b"".join(n.to_bytes(4, "little") for n in (0, 2, 3, 4))),
        pa.py_buffer(b"a\xffbc"),
    ],
)


def test_parquet_values_are_such_as_json_can_hold(tmp_path):
    path = parquet(
        tmp_path,
        lede=["a", None],
        day=pa.array([datetime.date(1994, 5, 12), None]),
        time=pa.array([1234567890123456789, None], pa.timestamp("ns")),
        price=pa.array([Decimal("1.10"), None]),
        number=[float("nan"), 1.5],
        words=pa.array([["x"], None]),
        kind=pa.array(["k", None]).dictionary_encode(),
        data=[b"\x00", None],
    )
    first, second = read(path)
    assert first.text == "a"
    assert second.text == ""
    assert second.values[0] is None
    assert first.values[1:] == (
        "1994-05-12", "2009-02-13 23:31:30.123456789", "1.10", None, ["x"], "k", b"\x00",
    )  # fmt: skip
    assert second.values[1:] == (None, None, None, 1.5, None, None, None)
    json.dumps(first.values[:-1], allow_nan=False)
    assert [one.columns for one in read_records(path, None, whole=False)] == [("lede",)] * 2


def test_parquet_text_that_is_not_utf8_is_a_bad_row(tmp_path):
    path = parquet(tmp_path, lede=NOT_UTF8, n=[1, 2, 3])
    assert texts(path) == [(1, None), (2, "b"), (3, "c")]
    assert reasons(path) == ["not UTF-8"]
    assert [row["n"] for batch in read_batches(path, None) for row in batch.to_pylist()] == [2, 3]
    path = parquet(tmp_path, other=NOT_UTF8, lede=["a", "b", "c"])
    assert texts(path) == [(1, None), (2, "b"), (3, "c")]
    assert [one.text for one in read_records(path, None, whole=False)] == ["a", "b", "c"]


def test_parquet_column_that_is_not_of_strings(tmp_path):
    path = parquet(tmp_path, lede=[1])
    for action in (read, lambda path: read_column_names(path, None)):
        with pytest.raises(
            CorpusError, match="the column 'lede' has values of type int64, not strings"
        ):
            action(path)


def test_parquet_column_that_text_cannot_hold(tmp_path):
    times = pa.array([[2**55]], pa.list_(pa.timestamp("ms")))  # in a year that Python has not
    path = parquet(tmp_path, lede=["a"], times=times)
    with pytest.raises(CorpusError, match=r"'times' has the type list<.*write \.parquet instead"):
        read(path)
    assert read_schema(path, None).field("times").type == times.type


def test_a_large_parquet_is_read_in_batches(tmp_path):
    path = tmp_path / "x.parquet"
    pq.write_table(pa.table({"lede": [str(n) for n in range(40_000)]}), path)
    assert texts(path) == [(n + 1, str(n)) for n in range(40_000)]
    assert max(len(batch) for batch in read_batches(path, None)) < 20_000
