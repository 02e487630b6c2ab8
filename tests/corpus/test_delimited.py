"""CSV with any of four delimiters, found by the header; and how a table of text is written."""

import csv
import io
import tracemalloc
from collections.abc import Iterator
from itertools import chain, repeat

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from ledeline.corpus.delimited import (
    AMBIGUOUS_DELIMITER,
    DELIMITERS,
    DelimitedTable,
    open_csv,
    open_tsv,
)

EACH = DELIMITERS.values()
COLUMNS = ["lede", "headline"]


def opened(data: bytes, names: list[str] = COLUMNS, delimiter: str | None = None) -> DelimitedTable:
    return open_csv(data.removesuffix(b"\n").split(b"\n"), names, delimiter)


def fields_of(table: DelimitedTable) -> list[list[str]]:
    assert table.header is not None
    assert not table.header.error
    return [table.header.fields, *(record.fields for record in table.rows)]


# -- the delimiter -----------------------------------------------------------------------------


@pytest.mark.parametrize("delimiter", EACH)
@pytest.mark.parametrize("quote", ["", '"'])
def test_the_delimiter_is_the_one_between_the_columns(delimiter: str, quote: str) -> None:
    rows = [["id", "headline", "lede"], ["1", "a, b; c | d", "e\tf"]]
    lines = [delimiter.join(f"{quote}{one}{quote}" for one in rows[0])]
    lines.append(delimiter.join(f'"{one}"' for one in rows[1]))
    table = opened("\n".join(lines).encode())
    assert table.delimiter == delimiter
    assert fields_of(table) == rows


@pytest.mark.parametrize(
    "header",
    [
        "lede,headline;x|y",  # other delimiters in names
        '"lede",headline,"a;lede;headline"',
        "lede;headline,lede,headline",  # the columns are found between semicolons, too
        "a|lede|headline|b,lede,headline",
    ],
)
def test_commas_go_before(header: str) -> None:
    table = opened(header.encode())
    assert (table.delimiter, table.column_note) == (",", "")
    assert fields_of(table) == list(csv.reader([header]))


@settings(max_examples=300, deadline=None)
@given(
    others=st.lists(st.text("ab,;|\t\"' \n", max_size=6), max_size=4),
    place=st.integers(0, 4),
    delimiter=st.sampled_from([*EACH]),
)
@example(others=["a;b"], place=0, delimiter=",")
@example(others=["x|a|b"], place=0, delimiter=";")
def test_no_header_is_read_in_a_way_it_was_not_written(
    others: list[str], place: int, delimiter: str
) -> None:
    """Whatever the other columns are called: it is read right, or it is refused."""
    names = [*others[:place], "a", "b", *others[place:]]
    written = io.StringIO(newline="")
    csv.writer(written, delimiter=delimiter, lineterminator="\n").writerow(names)
    table = opened(written.getvalue().encode(), ["a", "b"])
    assert table.header is not None
    if delimiter == "," or (table.delimiter != "," and not table.header.error):
        assert (table.delimiter, table.header.fields) == (delimiter, names)
    elif table.delimiter == ",":  # names with commas, between which all columns are there as well
        assert {"a", "b"} <= set(table.header.fields)
    else:
        assert table.header.error.startswith(AMBIGUOUS_DELIMITER)


def test_a_delimiter_that_is_not_clear_is_not_guessed() -> None:
    table = opened(b"lede;x|lede\n1;2|3", ["lede"])
    assert table.header is not None
    assert table.header.error == (
        "the delimiter is ambiguous: the columns are found between semicolons and between bars"
    )
    assert fields_of(opened(b"lede;x|lede\n1;2|3", ["lede"], "|")) == [
        ["lede;x", "lede"],
        ["1;2", "3"],
    ]


def test_a_delimiter_that_is_given_is_taken() -> None:
    assert fields_of(opened(b"lede,headline\na,b", COLUMNS, ";")) == [["lede,headline"], ["a,b"]]


@pytest.mark.parametrize(
    ("header", "delimiter", "between"),
    [
        (b"a;b;c,d", ";", ", between semicolons"),
        (b"a;b,c", ",", ""),
        (b'"a"|"b"', "|", ", between bars"),
        (b"a b", ",", ""),
    ],
)
def test_where_no_delimiter_fits_the_one_with_most_columns_is_named(
    header: bytes, delimiter: str, between: str
) -> None:
    table = opened(header)
    assert (table.delimiter, table.column_note) == (delimiter, between)


def test_faults_name_the_delimiter() -> None:
    header, records, *_ = opened(b'lede;headline\n"a" b;c\nd;"e\nf;g')
    assert header is not None
    assert [(one.line, one.error) for one in records] == [
        (2, "a closing quote is followed by text instead of a semicolon"),
        (3, "a quote is opened and never closed (lines 3 to 4 are lost)"),
    ]


def test_lines_are_numbered_from_the_first_whatever_was_tried() -> None:
    table = opened(b'\n"lede\n";"headline";lede\n"a\nb";c;d\ne;f;g')
    assert table.header is not None
    assert (table.header.line, table.header.text) == (2, b'"lede')
    assert [(one.line, one.fields[1]) for one in table.rows] == [(4, "c"), (6, "f")]


def test_nothing_but_the_header_is_kept_in_memory() -> None:
    lines: Iterator[bytes] = chain(
        [b"lede;headline"], repeat(b"some text; and more of it", 100_000)
    )
    tracemalloc.start()
    table = open_csv(lines, COLUMNS)
    assert sum(1 for _ in table.rows) == 100_000
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1 << 20


def test_blank_lines_have_no_header() -> None:
    assert opened(b"\n\n").header is None
    assert open_csv([], COLUMNS).header is None
    assert open_tsv([b"", b"\r"]).header is None


# -- line ends ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("data", "end"),
    [
        (b"lede\na\r\n", "\n"),
        (b"lede\r\na\n", "\r\n"),
        (b'"lede\nx"\r\na\n', "\r\n"),  # so a spreadsheet writes a line end in a cell
        (b'"lede\r\nx"\na\n', "\n"),
        (b"\r\nlede\n", "\n"),
        (b"lede", "\n"),
    ],
)
def test_line_ends_are_those_of_the_header(data: bytes, end: str) -> None:
    assert opened(data, ["lede"]).line_end == end


def test_line_ends_of_tsv() -> None:
    assert open_tsv([b"lede\r", b"a"]).line_end == "\r\n"
    assert open_tsv([b"\r", b'"lede', b"a\r"]).line_end == "\n"
