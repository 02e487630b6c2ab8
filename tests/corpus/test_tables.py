import csv
import datetime
import gzip
import json
import tempfile
import tracemalloc
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from ledeline.core.errors import CorpusError
from ledeline.corpus import InvalidHeader, InvalidRow, Pair, Row
from ledeline.corpus.table_writer import write_table
from ledeline.corpus.tables import json_object, json_strings, parse_date, read_table

MAY = datetime.date(1994, 5, 12)


def written(folder: Path, name: str, data: str | bytes) -> Path:
    path = folder / name
    path.write_bytes(data.encode() if isinstance(data, str) else data)
    return path


def rows_of(path: Path, date: str | None = None) -> list[Row]:
    return list(read_table(path, lede="lede", headline="headline", date=date))


def texts(rows: list[Row]) -> list[tuple[str, str]]:
    return [(row.lede, row.headline) for row in rows if isinstance(row, Pair)]


def reasons(rows: list[Row]) -> list[tuple[int, str]]:
    return [(row.line, row.reason) for row in rows if isinstance(row, InvalidRow)]


def zstd(data: bytes) -> bytes:
    return bytes(pa.Codec("zstd").compress(data))


# -- any format --------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["x.xml", "x", "x.gz", "x.json", "x.parquet.bz2"])
def test_unknown_suffix_lists_the_known_ones(tmp_path, name):
    for action in (lambda path: rows_of(path), lambda path: write_table(path, [], ["lede"])):
        with pytest.raises(CorpusError) as error:
            action(tmp_path / name)
        assert str(tmp_path / name) in str(error.value)
        known = (".parquet", ".csv", ".tsv", ".jsonl", "(.gz or .zst may follow)")
        assert all(one in str(error.value) for one in known)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["x.csv", "x.tsv", "x.jsonl", "x.parquet", "x.parquet.gz"])
def test_missing_file_and_folder(tmp_path, name):
    with pytest.raises(CorpusError, match=f"{name}: no such file"):
        rows_of(tmp_path / name)
    (tmp_path / name).mkdir()
    with pytest.raises(CorpusError, match="folder"):
        rows_of(tmp_path / name)


@pytest.mark.parametrize("name", ["x.csv", "x.tsv", "x.jsonl", "x.parquet"])
@pytest.mark.parametrize(
    ("suffix", "data"), [("", b""), (".gz", gzip.compress(b"", mtime=0)), (".zst", b"")]
)
def test_empty_file(tmp_path, name, suffix, data):
    path = written(tmp_path, name + suffix, data)
    assert rows_of(path) == [InvalidRow(str(path), 0, "the file is empty", "")]


@pytest.mark.parametrize("name", ["x.csv", "x.tsv", "x.jsonl"])
def test_rows_before_a_break_are_given(tmp_path, name):
    path = tmp_path / name
    write_table(path, ({"lede": f"l{n}", "headline": f"h{n}"} for n in range(9)), LEDE_HEADLINE)
    for suffix, pack in ((".gz", gzip.compress), (".zst", zstd)):
        packed = written(tmp_path, name + suffix, pack(path.read_bytes()) + b"rubbish")
        *pairs, broken = rows_of(packed)
        assert texts(pairs) == [(f"l{n}", f"h{n}") for n in range(len(pairs))]
        assert len(pairs) == 9
        assert broken.line == 10 + (name != "x.jsonl")
        assert broken.reason.startswith("the file cannot be read beyond this point")


@pytest.mark.parametrize(
    ("text", "date"),
    [
        ("1994-05-12", MAY),
        (" 1994-05-12 ", MAY),
        ("1994-05-12T23:59:59+02:00", MAY),
        ("1994-05-12 10:00", MAY),
        ("1994-05-12Z", MAY),
        ("", None),
        ("  ", None),
    ],
)
def test_dates(text, date):
    assert parse_date(text) == date


@pytest.mark.parametrize(
    "text",
    ["12.05.1994", "1994-13-01", "1994-02-30", "19940512", "1994-5-12", "1994-W19-4", "0000-01-01"]
    + ["1994-05-123", "1994-05", "null", "١٩٩٤-٠٥-١٢", "-1994-05-12"],
)
def test_what_is_no_date(text):
    with pytest.raises(ValueError, match="is not a date in the form YYYY-MM-DD"):
        parse_date(text)


# -- CSV ---------------------------------------------------------------------------------------


def test_csv_columns_are_found_by_name_and_records_span_lines(tmp_path):
    data = 'id,headline,date,lede\n1,"A, ""B""",1994-05-12,"a\nb\r\nc"\n\n2,C,,d\r\n3, x ,,"  "\n'
    path = written(tmp_path, "x.csv", data)
    assert rows_of(path, "date") == [
        Pair("a\nb\r\nc", 'A, "B"', MAY, str(path), 2),
        Pair("d", "C", None, str(path), 6),
        Pair("  ", " x ", None, str(path), 7),
    ]
    assert [row.date for row in rows_of(path)] == [None, None, None]


@pytest.mark.parametrize("mark", ["", "\ufeff"])
@pytest.mark.parametrize("suffix", ["", ".gz", ".zst"])
def test_csv_with_mark_packed_and_in_capitals(tmp_path, mark, suffix):
    pack = {"": bytes, ".gz": gzip.compress, ".zst": zstd}[suffix]
    data = pack(f'{mark}"lede",headline\na,A\n'.encode())
    assert texts(rows_of(written(tmp_path, f"X.CSV{suffix.upper()}", data))) == [("a", "A")]


def test_csv_bad_records_do_not_stop_the_reader(tmp_path):
    data = (
        b'lede,headline\na,A\none\nx,y,z\n"q" r,R\nb\xff,B\n"c\nc\xfe",C\n"d\n"e,E\n'
        b"f\rg,F\nnul\0,N\nz,Z\n"
    )
    path = written(tmp_path, "x.csv", data)
    rows = rows_of(path)
    assert texts(rows) == [("a", "A"), ("nul\0", "N"), ("z", "Z")]
    assert reasons(rows) == [
        (3, "1 field, but the header has 2"),
        (4, "3 fields, but the header has 2"),
        (5, "a closing quote is followed by text instead of a comma"),
        (6, "it is not UTF-8: byte 0xff at byte 2"),
        (7, "line 8 is not UTF-8: byte 0xfe at byte 2"),
        (9, "a closing quote is followed by text instead of a comma (lines 9 to 10 are lost)"),
        (11, "there is a carriage return outside quotes"),
    ]
    assert [row.text for row in rows if isinstance(row, InvalidRow)][3:5] == ["b\\xff,B", '"c']
    assert str(rows[1]) == f"{path}: line 3: 1 field, but the header has 2"


def test_csv_quote_that_is_never_closed(tmp_path):
    path = written(tmp_path, "x.csv", 'lede,headline\na,A\nb,"B\nc,C\nd,D\n')
    rows = rows_of(path)
    assert texts(rows) == [("a", "A")]
    assert reasons(rows) == [(3, "a quote is opened and never closed (lines 3 to 5 are lost)")]


def test_csv_field_over_the_limit(tmp_path):
    path = written(tmp_path, "x.csv", f"lede,headline\n{'x' * 17_000_000},A\nb,B\n")
    rows = rows_of(path)
    assert texts(rows) == [("b", "B")]
    assert reasons(rows)[0][0] == 2
    assert "longer than 16,777,216 characters" in rows[0].reason
    assert len(rows[0].text) == 200


def test_csv_long_field_under_the_limit(tmp_path):
    path = written(tmp_path, "x.csv", f"lede,headline\n{'x' * 1_000_000},A\n")
    assert len(rows_of(path)[0].lede) == 1_000_000


@pytest.mark.parametrize("name", ["x.csv", "x.tsv"])
def test_missing_column_rejects_the_whole_file(tmp_path, name):
    comma = "," if name == "x.csv" else "\t"
    path = written(tmp_path, name, f"Lede{comma}title{comma}headlines\na{comma}b{comma}c\n")
    rows = rows_of(path)
    assert len(rows) == 1
    assert str(rows[0]) == (
        f"{path}: line 1: there is no column 'lede' (the nearest is 'Lede'); "
        "the columns are 'Lede', 'title', 'headlines'"
    )


@pytest.mark.parametrize("name", ["x.csv", "x.tsv"])
@pytest.mark.parametrize(
    ("header", "reason"),
    [
        (b"lede,headline,lede\n", "the column 'lede' occurs 2 times"),
        (b"lede,headlin\xff\n", "not UTF-8: byte 0xff"),
        (b"\n\n", "there is no header row, only blank lines"),
        (b"lede,headline\n", "there is no column 'date'"),
    ],
)
def test_header_that_cannot_be_used(tmp_path, name, header, reason):
    header = header.replace(b",", b"," if name == "x.csv" else b"\t")
    rows = rows_of(written(tmp_path, name, header), "date")
    assert [row.line for row in rows] == [1]
    assert reason in rows[0].reason


@pytest.mark.parametrize("name", ["x.csv", "x.tsv"])
def test_header_alone_gives_nothing(tmp_path, name):
    write_table(tmp_path / name, [], ["lede", "headline"])
    assert rows_of(tmp_path / name) == []


@pytest.mark.parametrize("name", ["x.csv", "x.tsv", "x.jsonl", "x.parquet"])
def test_bad_date_is_a_bad_row(tmp_path, name):
    days = ["1994-05-12", "12 May", "", "1994-05-12T00:00:00Z"]
    table = [{"lede": "a", "headline": "A", "date": day} for day in days]
    write_table(tmp_path / name, table, ["lede", "headline", "date"])
    first, second, third, fourth = rows_of(tmp_path / name, "date")
    assert (first.date, third.date, fourth.date) == (MAY, None, MAY)
    assert second.reason == "'12 May' is not a date in the form YYYY-MM-DD"
    assert second.line == {"x.jsonl": 2, "x.parquet": 2}.get(name, 3)
    assert {row.date for row in rows_of(tmp_path / name)} == {None}


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
def test_csv_delimiters(tmp_path, delimiter):
    data = '\ufeffid,headline,date,lede\r\n1,A,1994-05-12,"a,;|\tb"\r\n2,B\r\n'
    data = data.replace("a,;", "\0").replace(",", delimiter).replace("\0", "a,;")
    path = written(tmp_path, "x.csv", data)
    pair, bad = rows_of(path, "date")
    assert pair == Pair("a,;|\tb", "A", MAY, str(path), 2)
    assert (bad.line, bad.reason) == (3, "2 fields, but the header has 4")


def test_csv_delimiter_that_is_not_clear_rejects_the_file(tmp_path):
    path = written(tmp_path, "x.csv", "lede;headline;x|lede|headline\n1;2;3|4|5\n")
    (row,) = rows_of(path)
    assert isinstance(row, InvalidHeader)
    assert row.reason.startswith("the delimiter is ambiguous: ")
    rows = read_table(path, lede="lede", headline="headline", date=None, delimiter="|")
    assert texts(list(rows)) == [("4", "5")]


def test_csv_columns_that_are_missing_are_said_with_the_delimiter(tmp_path):
    path = written(tmp_path, "x.csv", "published;title;standfirst\n")
    (row,) = rows_of(path)
    assert str(row) == (
        f"{path}: line 1: there is no column 'lede'; the columns are 'published', 'title', "
        "'standfirst', between semicolons"
    )


# -- TSV ---------------------------------------------------------------------------------------


def test_tsv_knows_no_quotes(tmp_path):
    data = b'lede\theadline\r\n"a\tA"\r\n\n\'b\t\x0c"\rB\nc\n\xff\tD\ne\tE\t\nf\t\n'
    rows = rows_of(written(tmp_path, "x.tsv", data))
    assert texts(rows) == [('"a', 'A"'), ("'b", '\x0c"\rB'), ("f", "")]
    assert reasons(rows) == [
        (5, "1 field, but the header has 2"),
        (6, "not UTF-8: byte 0xff at byte 1"),
        (7, "3 fields, but the header has 2"),
    ]


# -- JSON lines --------------------------------------------------------------------------------


def test_jsonl_bad_lines_do_not_stop_the_reader(tmp_path):
    deep = "[" * 200_000
    lines = [
        '{"lede": "a\\n\\u00e9\\ud83d\\ude00", "headline": "A\u2028", "extra": [1]}',
        "",
        "  \t",
        '{"lede": "b"',
        '["lede", "headline"]',
        '{"lede": "c", "Headline": "C"}',
        '{"lede": 7, "headline": "D"}',
        '{"lede": null, "headline": null}',
        deep,
        '{"lede": "f", "headline": "F", "n": ' + "9" * 5000 + "}",
        '{"lede": "\\ud83d", "headline": "G"}',
        '{"lede": "h", "headline": "H", "other": "\\ud83d"} ',
    ]
    path = written(tmp_path, "x.jsonl", "\r\n".join(lines).encode() + b"\n\xff\n{}\n")
    rows = rows_of(path)
    # half a character is left to the door of the text profiles
    assert texts(rows) == [("a\né😀", "A\u2028"), ("", ""), ("\ud83d", "G"), ("h", "H")]
    assert [row.line for row in rows] == [1, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14]
    found = [reason for _, reason in reasons(rows)]
    assert found[0].startswith("not JSON: Expecting")
    assert found[1] == "the line is a list but must be an object"
    assert found[2].startswith("there is no column 'headline' (the nearest is 'Headline')")
    assert found[3] == "the value of 'lede' is a number but must be a string"
    assert found[4] == "not usable JSON: it is nested too deeply"
    assert found[5].startswith("not usable JSON: Exceeds the limit")
    assert found[6] == "not UTF-8: byte 0xff at byte 1"
    assert found[7] == "there is no column 'lede'; the columns are none"
    assert rows[6].text == "[" * 200


def test_what_is_wrong_with_json_reads_well():
    with pytest.raises(
        ValueError, match=r"^not JSON: Unterminated string starting at character 2$"
    ):
        json_object('{"x')


@pytest.mark.parametrize(
    ("value", "name"),
    [("true", "true or false"), ("1.5", "a number"), ("[]", "a list"), ("{}", "an object")],
)
def test_what_is_no_string_is_named_as_in_json(value, name):
    with pytest.raises(ValueError, match=f"the value of 'lede' is {name} but must be a string"):
        json_strings(json_object(f'{{"lede": {value}}}'), ["lede"])


def test_jsonl_dates(tmp_path):
    days = ['"1994-05-12"', "null", '""', "19940512"]
    lines = [f'{{"lede": "a", "headline": "A", "date": {day}}}' for day in days]
    path = written(tmp_path, "x.jsonl", "\n".join([*lines, '{"lede": "a", "headline": "A"}']))
    rows = rows_of(path, "date")
    assert [row.date for row in rows[:3]] == [MAY, None, None]
    assert reasons(rows)[0] == (4, "the value of 'date' is a number but must be a string")
    assert reasons(rows)[1][1].startswith("there is no column 'date'")
    assert len(texts(rows_of(path))) == 5


# -- Parquet -----------------------------------------------------------------------------------


def parquet(folder: Path, name: str = "x.parquet", **columns: object) -> Path:
    pq.write_table(pa.table(columns), folder / name, row_group_size=2)
    return folder / name


STRINGS = ["a", None, "é\n😀", "", "a"]


@pytest.mark.parametrize(
    "column",
    [
        pa.array(STRINGS, pa.string()),
        pa.array(STRINGS, pa.large_string()),
        pa.array(STRINGS, pa.string()).dictionary_encode(),
        pa.array(STRINGS, pa.large_string()).dictionary_encode(),
        pa.array(STRINGS, pa.string_view()),
    ],
    ids=lambda column: str(column.type),
)
def test_parquet_string_types(tmp_path, column):
    path = parquet(tmp_path, lede=column, other=[1] * 5, headline=["A", "B", None, "D", "E"])
    assert rows_of(path) == [
        Pair("a", "A", None, str(path), 1),
        Pair("", "B", None, str(path), 2),
        Pair("é\n😀", "", None, str(path), 3),
        Pair("", "D", None, str(path), 4),
        Pair("a", "E", None, str(path), 5),
    ]


def test_parquet_column_of_nulls(tmp_path):
    path = parquet(tmp_path, lede=pa.nulls(2), headline=["A", "B"], date=pa.nulls(2))
    assert rows_of(path, "date") == [
        Pair("", "A", None, str(path), 1),
        Pair("", "B", None, str(path), 2),
    ]


LATE = datetime.datetime(1994, 5, 12, 23, 59, 59)


@pytest.mark.parametrize(
    "column",
    [
        pa.array([MAY, None], pa.date32()),
        pa.array([MAY, None], pa.date64()),
        pa.array([LATE, None], pa.timestamp("s")),
        pa.array([LATE, None], pa.timestamp("ms")),
        pa.array([LATE, None], pa.timestamp("us")),
        pa.array([LATE, None], pa.timestamp("ns")),
        pa.array([LATE, None], pa.timestamp("us", "UTC")),
        pa.array(["1994-05-12", None]),
        pa.array(["1994-05-12 23:00", ""], pa.large_string()),
        pa.array(["1994-05-12T23:00", None]).dictionary_encode(),
    ],
    ids=lambda column: str(column.type),
)
def test_parquet_date_types(tmp_path, column):
    path = parquet(tmp_path, lede=["a", "b"], headline=["A", "B"], date=column)
    assert [row.date for row in rows_of(path, "date")] == [MAY, None]


def test_parquet_days_before_1970_and_after_9999(tmp_path):
    days = pa.array([-1, -719162, -719163, 2932896, 2932897, 2**31 - 1], pa.int32())
    path = parquet(tmp_path, lede=["a"] * 6, headline=["A"] * 6, date=days.cast(pa.date32()))
    rows = rows_of(path, "date")
    assert [row.date for row in rows if isinstance(row, Pair)] == [
        datetime.date(1969, 12, 31),
        datetime.date.min,
        datetime.date.max,
    ]
    assert [line for line, _ in reasons(rows)] == [3, 5, 6]
    evening = pa.array([datetime.datetime(1960, 1, 1, 23, 0)], pa.timestamp("us"))
    path = parquet(tmp_path, lede=["a"], headline=["A"], date=evening)
    assert rows_of(path, "date")[0].date == datetime.date(1960, 1, 1)


@pytest.mark.parametrize(
    ("column", "kind"),
    [([1], "int64"), ([b"a"], "binary"), ([["a"]], "list<"), ([{"a": "b"}], "struct<")],
)
def test_parquet_column_that_is_not_of_strings(tmp_path, column, kind):
    path = parquet(tmp_path, lede=column, headline=["A"])
    (row,) = rows_of(path)
    assert row.line == 0
    assert row.reason.startswith(f"the column 'lede' has values of type {kind}")
    assert row.file == str(path)
    path = parquet(tmp_path, lede=["a"], headline=["A"], date=column)
    assert reasons(rows_of(path, "date"))[0][0] == 0
    assert texts(rows_of(path)) == [("a", "A")]


def test_parquet_missing_and_doubled_columns(tmp_path):
    path = parquet(tmp_path, ledes=["a"], headline=["A"])
    (row,) = rows_of(path)
    assert str(row) == (
        f"{path}: there is no column 'lede' (the nearest is 'ledes'); "
        "the columns are 'ledes', 'headline'"
    )
    table = pa.table([["a"], ["b"], ["A"]], names=["lede", "lede", "headline"])
    pq.write_table(table, path)
    assert reasons(rows_of(path)) == [(0, "the column 'lede' occurs 2 times")]


def test_parquet_text_that_is_not_utf8(tmp_path):
    offsets = pa.py_buffer(b"".join(n.to_bytes(4, "little") for n in (0, 2, 3, 4)))
    bad = pa.Array.from_buffers(pa.string(), 3, [None, offsets, pa.py_buffer(b"a\xffbc")])
    path = parquet(tmp_path, lede=bad, headline=["A", "B", "C"])
    assert rows_of(path) == [
        InvalidRow(str(path), 1, "not UTF-8", "a\\xff\tA"),
        Pair("b", "B", None, str(path), 2),
        Pair("c", "C", None, str(path), 3),
    ]
    path = parquet(tmp_path, lede=["a", "b", "c"], headline=["A", "B", "C"], date=bad)
    assert reasons(rows_of(path, "date"))[0] == (1, "the date is not UTF-8")


def test_parquet_without_rows(tmp_path):
    path = parquet(tmp_path, lede=pa.array([], pa.string()), headline=pa.array([], pa.string()))
    assert rows_of(path) == []


@pytest.mark.parametrize("suffix", [".gz", ".zst"])
def test_packed_parquet_leaves_no_copy_behind(tmp_path, monkeypatch, suffix):
    (tmp_path / "tmp").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "tmp"))
    data = parquet(tmp_path, lede=["a", "b"], headline=["A", "B"]).read_bytes()
    packed = gzip.compress(data) if suffix == ".gz" else zstd(data)
    path = written(tmp_path, f"x.parquet{suffix}", packed)
    rows = read_table(path, lede="lede", headline="headline", date=None)
    assert next(rows) == Pair("a", "A", None, str(path), 1)
    assert len(list((tmp_path / "tmp").iterdir())) == 1
    rows.close()
    assert list((tmp_path / "tmp").iterdir()) == []
    (row,) = rows_of(written(tmp_path, f"x.parquet{suffix}", packed[:-5]))
    assert row.line == 0
    assert row.reason.startswith("the file cannot be read beyond this point")
    assert list((tmp_path / "tmp").iterdir()) == []


def test_broken_parquet_names_the_file(tmp_path):
    path = parquet(tmp_path, lede=["a"] * 100, headline=["A"] * 100)
    data = path.read_bytes()
    for broken in (b"PAR1", b"no table\n" * 100, data[:-1], data[: len(data) // 2]):
        (row,) = rows_of(written(tmp_path, "x.parquet", broken))
        assert str(row).startswith(f"{path}: not a valid Parquet file: ")
        assert "\n" not in row.reason


def test_parquet_that_breaks_half_way_gives_the_rows_before(tmp_path):
    column = [f"{n:040}" for n in range(40_000)]
    table = pa.table({"lede": column, "headline": column})
    path = tmp_path / "x.parquet"
    pq.write_table(table, path, row_group_size=20_000, use_dictionary=False)
    data = bytearray(path.read_bytes())
    place = len(data) * 7 // 8
    data[place : place + 2000] = bytes(2000)
    path.write_bytes(data)
    *pairs, broken = rows_of(path)
    assert len(pairs) >= 16_384
    assert texts(pairs) == [(text, text) for text in column[: len(pairs)]]
    assert broken.line == len(pairs) + 1
    assert broken.reason.startswith("not a valid Parquet file")


# -- streams -----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["x.csv", "x.tsv", "x.jsonl", "x.jsonl.gz"])
def test_memory_does_not_grow_with_the_table(tmp_path, name):
    row = {"lede": "a lede of some ordinary words .", "headline": "ordinary words"}
    write_table(tmp_path / name, (row for _ in range(50_000)), LEDE_HEADLINE)
    tracemalloc.start()
    rows = read_table(tmp_path / name, lede="lede", headline="headline", date=None)
    assert sum(isinstance(row, Pair) for row in rows) == 50_000
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 6 << 20


def test_parquet_memory_is_that_of_a_batch(tmp_path):
    column = pa.array([f"{n:0100}" for n in range(200_000)])
    pq.write_table(pa.table({"lede": column, "headline": column}), tmp_path / "x.parquet")
    tracemalloc.start()
    rows = read_table(tmp_path / "x.parquet", lede="lede", headline="headline", date=None)
    assert sum(isinstance(row, Pair) for row in rows) == 200_000
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 16 << 20  # of the 60 MB that all texts would take


# -- writing -----------------------------------------------------------------------------------

LEDE_HEADLINE = ["lede", "headline"]
WRITABLE = [".parquet"] + [
    f"{s}{c}" for s in (".csv", ".tsv", ".jsonl") for c in ("", ".gz", ".zst")
]
NASTY = st.text(st.characters(exclude_categories=["Cs"]), max_size=12) | st.sampled_from(
    ['"', '""', '"a",\n"b"', "\r", "\r\n", "\n", "a\rb", ",", "\\", "\\n", "\0", "\ufeff", "\u2028"]
    + ["\x1a", " ", "'", "😀", "é", "null", "{}", "#", "a\tb", "\x85", "\x0c"]
)


@given(rows=st.lists(st.tuples(NASTY, NASTY), max_size=8), suffix=st.sampled_from(WRITABLE))
@example(rows=[("", "")], suffix=".csv")
@example(rows=[("", "")], suffix=".tsv")
@settings(deadline=None, max_examples=200)
def test_what_is_written_is_read_back(rows, suffix):
    if suffix.startswith(".tsv"):
        rows = [tuple(" ".join(value.split()) for value in row) for row in rows]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"x{suffix}"
        table = [dict(zip(LEDE_HEADLINE, row, strict=True)) for row in rows]
        write_table(path, iter(table), LEDE_HEADLINE)
        if rows or not suffix.startswith(".jsonl"):
            assert texts(rows_of(path)) == rows
            assert len(rows_of(path)) == len(rows)
        assert list(Path(folder).iterdir()) == [path]


def test_only_the_named_columns_are_written_in_order(tmp_path):
    rows = [{"headline": "A", "lede": 'a"', "more": "x"}]
    write_table(tmp_path / "deep" / "x.csv", rows, LEDE_HEADLINE)
    assert (tmp_path / "deep" / "x.csv").read_text() == '"lede","headline"\n"a""","A"\n'
    write_table(tmp_path / "x.jsonl", rows, LEDE_HEADLINE)
    assert json.loads((tmp_path / "x.jsonl").read_text()) == {"lede": 'a"', "headline": "A"}
    write_table(tmp_path / "x.parquet", rows, LEDE_HEADLINE)
    assert pq.read_table(tmp_path / "x.parquet").to_pylist() == [{"lede": 'a"', "headline": "A"}]
    with (tmp_path / "deep" / "x.csv").open(newline="") as handle:
        assert list(csv.DictReader(handle)) == [{"lede": 'a"', "headline": "A"}]


@pytest.mark.parametrize("value", ["a\tb", "a\n", "\r"])
def test_tsv_refuses_what_it_cannot_hold(tmp_path, value):
    rows = [{"lede": "a", "headline": "A"}, {"lede": "b", "headline": value}]
    with pytest.raises(CorpusError, match=r"x\.tsv: row 2 has a tab or a line end"):
        write_table(tmp_path / "x.tsv", rows, LEDE_HEADLINE)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("suffix", WRITABLE)
def test_failed_writing_leaves_the_old_file(tmp_path, suffix):
    path = written(tmp_path, f"x{suffix}", b"old")
    with pytest.raises(CorpusError, match="row 2 has half a character"):
        write_table(path, [{"a": "x"}, {"a": "\ud800"}], ["a"])
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_packed_parquet_is_not_written(tmp_path):
    with pytest.raises(CorpusError, match=r"must end in \.parquet, or in \.csv.*\.gz"):
        write_table(tmp_path / "x.parquet.gz", [], ["a"])


def test_many_rows_make_many_batches(tmp_path):
    rows = ({"lede": str(n), "headline": str(-n)} for n in range(40_000))
    write_table(tmp_path / "x.parquet", rows, LEDE_HEADLINE)
    got = rows_of(tmp_path / "x.parquet")
    assert [(row.line, row.lede) for row in got] == [(n + 1, str(n)) for n in range(40_000)]
