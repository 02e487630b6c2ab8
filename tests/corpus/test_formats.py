"""What a file holds by its name, and what somebody meant who typed a name."""

from pathlib import Path

import pytest

from ledeline.core.errors import CorpusError
from ledeline.corpus.formats import format_by_name, input_format, looks_like_file_name, table_format
from ledeline.synth.newsroom import generate


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("x.csv", "csv"),
        ("x.TSV.gz", "tsv"),
        ("x.jsonl.zst", "jsonl"),
        ("a.b.parquet", "parquet"),
        ("x.txt", "txt"),
        ("x", None),
        ("x.gz", None),
        ("x.log", None),
    ],
)
def test_kinds_of_names(name: str, kind: str | None) -> None:
    assert format_by_name(Path(name)) == kind
    assert input_format(Path(name)) == (kind or "txt")


@pytest.mark.parametrize("name", ["x", "x.txt", "x.gz", "x.json"])
def test_names_of_no_table(name: str) -> None:
    with pytest.raises(CorpusError, match=rf"{name}: the name of a table must end in \.csv, "):
        table_format(Path(name))


@pytest.mark.parametrize(
    "text", ["ledes.txt", "./data/x.CSV", "x.jsonl.gz", "~/news/*.parquet", "x.xlsx", "données.tsv"]
)
def test_names_look_like_files(text: str) -> None:
    assert looks_like_file_name(text)


def test_a_name_with_white_space_is_of_a_file_that_is_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert not looks_like_file_name("my ledes.txt")
    (tmp_path / "my ledes.txt").touch()
    assert looks_like_file_name("my ledes.txt")


LEDES = [
    "The file was called ledes.txt",
    "Police found the list in a file named names.csv.",
    "robots.txt is no law, a court in Oslo said on Monday.",
    "東京株式市場で日経平均株価が上昇した。",
    "中国政府周一表示将公布新数据data.csv。",
    "ฝนตกหนักในกรุงเทพมหานคร",
    "Rain.",
    "U.S.",
    "Stocks rise at amazon.com",
    "amazon.com",
    "3.5",
    "-",
    "",
    ".",
    "..",
    "a" * 100_000,
    "a/" * 10_000 + "b",
    "nul\0.",
]


@pytest.mark.parametrize("text", LEDES, ids=range(len(LEDES)))
def test_ledes_do_not_look_like_files(text: str) -> None:
    assert not looks_like_file_name(text)


def test_no_lede_of_the_newsroom_looks_like_a_file() -> None:
    assert not any(looks_like_file_name(story.lede) for story in generate(500, 1))


@pytest.mark.parametrize("text", ["nul\0.txt", "a" * 100_000 + ".csv"])
def test_names_that_no_file_can_have_are_no_failure(text: str) -> None:
    assert looks_like_file_name(text)
