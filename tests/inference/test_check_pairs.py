"""Many pairs are checked in order, and nothing of their table is lost."""

import csv
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from ledeline.core.errors import CorpusError
from ledeline.corpus.inputs import FileInput
from ledeline.corpus.table_writer import write_table
from ledeline.inference import check_pairs as module
from ledeline.inference.check_pairs import CheckPairsResult, check_pairs
from ledeline.inference.checks.check import Check
from ledeline.inference.checks.doubt import Doubt
from ledeline.inference.outputs.added_columns import CHECK_COLUMNS
from ledeline.inference.outputs.open_output import open_output
from ledeline.inference.outputs.reporter import LimitedReporter

TABLES = ["out.csv", "out.tsv", "out.jsonl", "out.parquet"]


class Killed(Exception):
    pass


class Fake:
    """Doubts the first word of a headline that its lede does not have."""

    def __init__(self, fails_on: str | None = None) -> None:
        self.pairs: list[tuple[str, str]] = []
        self._fails_on = fails_on

    def check_batch(self, pairs: Iterable[tuple[str, str]]) -> list[Check]:
        pairs = list(pairs)
        if self._fails_on in [headline for _, headline in pairs]:
            raise Killed
        self.pairs += pairs
        return [self._check(*pair) for pair in pairs]

    def _check(self, lede: str, headline: str) -> Check:
        if not lede.strip() or not headline.strip():
            return Check(None)
        word = headline.split()[0]
        doubt = Doubt(0, len(word), word, "name", f'the lede has "{lede}"\t')
        return Check(1.0) if word in lede else Check(0.25, (doubt,))


def run(
    given: Path,
    output: Path,
    checker: Fake | None = None,
    said: list[str] | None = None,
    **choices: Any,
) -> CheckPairsResult:
    opened = FileInput(given, choices.pop("lede", "lede"))
    column, resume = choices.pop("headline", "headline"), choices.pop("resume", False)
    heard = said if said is not None else []
    with (
        open_output(output, opened, added=CHECK_COLUMNS, resume=resume) as target,
        LimitedReporter(heard.append, "line", unlimited=True, warnings=True) as reporter,
    ):
        return check_pairs(checker or Fake(), opened, column, target, reporter, **choices)


def rows_of(path: Path) -> list[dict[str, Any]]:
    match path.suffix:
        case ".jsonl":
            return [json.loads(line) for line in path.read_text().splitlines()]
        case ".parquet":
            return list(pq.read_table(path).to_pylist())
    with path.open(newline="") as file:
        quoting = csv.QUOTE_NONE if path.suffix == ".tsv" else csv.QUOTE_MINIMAL
        delimiter = "\t" if path.suffix == ".tsv" else ","
        return list(csv.DictReader(file, delimiter=delimiter, quoting=quoting))


ROWS = [
    {"n": "1", "lede": "Ann spoke", "headline": "Ann speaks"},
    {"n": "2", "lede": "Ann spoke", "headline": "Bob speaks"},
    {"n": "3", "lede": "", "headline": "Bob speaks"},
    {"n": "4", "lede": "Ann spoke", "headline": " "},
    {"n": "5", "lede": "Bob spoke", "headline": "Bob speaks"},
]
DOUBT = {"start": 0, "end": 3, "words": "Bob", "kind": "name", "why": 'the lede has "Ann spoke"\t'}
CHECKS: list[tuple[float | None, list[dict[str, Any]] | None]] = [
    (1.0, []),
    (0.25, [DOUBT]),
    (None, None),
    (None, None),
    (1.0, []),
]


@pytest.mark.parametrize("given", ["in.csv", "in.tsv", "in.jsonl", "in.parquet"])
@pytest.mark.parametrize("output", TABLES)
def test_rows_are_kept_and_get_two_columns(tmp_path: Path, given: str, output: str) -> None:
    said: list[str] = []
    write_table(tmp_path / given, ROWS, ["n", "lede", "headline"])
    result = run(tmp_path / given, tmp_path / output, said=said, min_support=0.5)
    assert result == CheckPairsResult(5, 5, 3, None)
    as_text = output in ("out.csv", "out.tsv")
    made = rows_of(tmp_path / output)
    for row, pair, (support, doubts) in zip(made, ROWS, CHECKS, strict=True):
        cells = ["" if one is None else json.dumps(one) for one in (support, doubts)]
        values = cells if as_text else [support, doubts]
        assert row == pair | dict(zip(("support", "doubts"), values, strict=True))
    first = 1 if given in ("in.jsonl", "in.parquet") else 2  # the header is a line
    assert said == [
        f"line {2 + first}: empty: the lede has no words",
        f"line {3 + first}: empty: the headline has no words",
    ]


@pytest.mark.parametrize("output", TABLES)
def test_stopped_and_resumed_it_is_as_if_never_stopped(
    tmp_path: Path, output: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "FIRST_CHUNK_SIZE", 1)
    write_table(tmp_path / "in.csv", ROWS, ["n", "lede", "headline"])
    run(tmp_path / "in.csv", tmp_path / "whole" / output)
    with pytest.raises(Killed):
        run(tmp_path / "in.csv", tmp_path / output, Fake(fails_on=" "))
    checker = Fake()
    result = run(tmp_path / "in.csv", tmp_path / output, checker, resume=True)
    assert result.num_done == 5
    assert ("Ann spoke", "Ann speaks") not in checker.pairs
    assert (tmp_path / output).read_bytes() == (tmp_path / "whole" / output).read_bytes()


@pytest.mark.parametrize("output", ["out.csv", "out.tsv", "out.jsonl"])
def test_cut_anywhere_and_resumed_it_is_as_if_never_cut(tmp_path: Path, output: str) -> None:
    write_table(tmp_path / "in.csv", ROWS, ["n", "lede", "headline"])
    path = tmp_path / output
    run(tmp_path / "in.csv", path)
    whole = path.read_bytes()
    for length in range(len(whole) + 1):
        path.write_bytes(whole[:length])
        run(tmp_path / "in.csv", path, resume=True)
        assert path.read_bytes() == whole, length


def test_headlines_that_are_no_texts_are_said_and_kept(tmp_path: Path) -> None:
    objects = [
        {"lede": "Ann spoke", "headline": "Ann"},
        {"lede": "Ann spoke", "headline": 5},
        {"lede": "Ann spoke"},
        {"lede": "Ann spoke", "headline": None},
    ]
    given = tmp_path / "in.jsonl"
    given.write_text("".join(json.dumps(one) + "\n" for one in objects) + "{broken\n")
    said: list[str] = []
    run(given, tmp_path / "out.jsonl", said=said)
    unchecked = {"support": None, "doubts": None}
    assert rows_of(tmp_path / "out.jsonl") == [
        objects[0] | {"support": 1.0, "doubts": []},
        *(one | unchecked for one in objects[1:]),
    ]
    assert said[0].startswith("line 2: invalid: the value of 'headline' is")
    assert said[1].startswith("line 3: invalid: there is no column 'headline'")
    assert said[2] == "line 4: empty: the headline has no words"
    assert said[3].startswith(f"{given}: line 5: not JSON")


def test_other_columns_can_be_named(tmp_path: Path) -> None:
    given = tmp_path / "in.csv"
    given.write_text("title,body,headline\nAnn,Ann spoke,Bob\n")
    checker = Fake()
    run(given, tmp_path / "out.csv", checker, lede="body", headline="title")
    assert checker.pairs == [("Ann spoke", "Ann")]


@pytest.mark.parametrize(
    ("header", "sentence"),
    [
        ("lede,titel", "in.csv: there is no column 'headline'"),
        ("lede,headline,headline", "in.csv: the column 'headline' occurs 2 times"),
        ("lede,headline,support", "the table already has a column 'support'; give it another name"),
    ],
)
def test_a_table_that_cannot_be_checked_is_refused(
    tmp_path: Path, header: str, sentence: str
) -> None:
    (tmp_path / "in.csv").write_text(f"{header}\n")
    with pytest.raises(CorpusError, match=sentence):
        run(tmp_path / "in.csv", tmp_path / "out.csv")
    assert [path.name for path in tmp_path.iterdir()] == ["in.csv"]


def test_a_support_that_is_just_enough_is_enough(tmp_path: Path) -> None:
    write_table(tmp_path / "in.csv", ROWS[:2], ["n", "lede", "headline"])
    assert run(tmp_path / "in.csv", tmp_path / "a.csv", min_support=0.25).num_low == 0
    assert run(tmp_path / "in.csv", tmp_path / "b.csv", min_support=0.26).num_low == 1
