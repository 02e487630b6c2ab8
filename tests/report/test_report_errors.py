"""Each folder that cannot be reported on is one sentence that names what is wrong."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ledeline.core.errors import ScoreError
from ledeline.report import report_page
from report_folders import TestSet, newsroom, write_evaluation


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write_evaluation(tmp_path / "run", "EncDec", {"news": TestSet(newsroom(4, 0, 0.9))})


def refused(*folders: Path, baseline: str | None = None) -> str:
    with pytest.raises(ScoreError) as caught:
        report_page(folders, baseline=baseline)
    message = str(caught.value)
    assert "\n" not in message
    return message


def change(path: Path, edit: Callable[[Any], object]) -> None:
    values = json.loads(path.read_text())
    edit(values)
    path.write_text(json.dumps(values))


class TestFolders:
    def test_none(self) -> None:
        assert refused().startswith("there is no folder to report on")

    def test_missing(self, tmp_path: Path) -> None:
        assert refused(tmp_path / "x").startswith(f"{tmp_path}/x: there is no such folder")

    def test_twice(self, folder: Path) -> None:
        assert "is given 2 times" in refused(folder, folder.parent / "run")

    def test_no_summary(self, folder: Path) -> None:
        (folder / "evaluation.json").unlink()
        assert refused(folder).startswith(f"{folder}: has no evaluation.json")

    @pytest.mark.parametrize("text", ["{", "[]", "[" * 100_000, '{"a": "\udc80"}', ""])
    def test_broken_summary(self, folder: Path, text: str) -> None:
        (folder / "evaluation.json").write_text(text, errors="surrogateescape")
        assert refused(folder).startswith(f"{folder}/evaluation.json: ")

    def test_no_set_in_common(self, folder: Path, tmp_path: Path) -> None:
        sets = {"wire": TestSet(newsroom(4, 0, 0.5))}
        other = write_evaluation(tmp_path / "other", "EncDec+SPM", sets)
        message = refused(folder, other)
        assert message.startswith(f"{other}: has no test set in common with the baseline EncDec")
        assert "(wire; news)" in message

    def test_unknown_baseline(self, folder: Path) -> None:
        message = refused(folder, baseline="SPM")
        assert "'SPM'" in message
        assert "'EncDec'" in message

    def test_a_baseline_that_is_two(self, folder: Path, tmp_path: Path) -> None:
        sets = {"news": TestSet(newsroom(4, 0, 0.5))}
        other = write_evaluation(tmp_path / "two", "EncDec", sets)
        message = refused(folder, other, baseline="EncDec")
        assert message == (
            "the baseline 'EncDec' matches 2 systems; use one of 'EncDec (run)', 'EncDec (two)'"
        )


class TestSummary:
    @pytest.mark.parametrize(
        ("edit", "words"),
        [
            (lambda all_: all_.update(format=2), "format is 2 where 1"),
            (lambda all_: all_.pop("format"), "format is not there"),
            (lambda all_: all_.pop("system"), "system is not there where a text is needed"),
            (lambda all_: all_.update(system=3), "system is 3 where a text is needed"),
            (lambda all_: all_.update(sets=[]), r"sets is \[\] where an object is needed"),
            (lambda all_: all_.update(sets={}), "no test set is finished; continue with"),
            (lambda all_: all_["sets"].update({"../x": {}}), "'../x' cannot be the folder"),
            (lambda all_: all_["sets"].update(other={"pairs": 1}), "other: does not exist, but"),
            (lambda all_: all_["sets"]["news"].update(pairs=-1), r"sets.news.pairs is -1"),
            (lambda all_: all_["sets"]["news"].update(pairs=0), r"sets.news.pairs is 0"),
            (lambda all_: all_["sets"]["news"].update(pairs=True), r"sets.news.pairs is true"),
            (lambda all_: all_["sets"]["news"].pop("rouge2"), "sets.news.rouge2 is not there"),
            (
                lambda all_: all_["sets"]["news"]["rougeL"].update(f1=1.5),
                "sets.news.rougeL.f1 is 1.5 where a number from 0 to 1",
            ),
            (
                lambda all_: all_["sets"]["news"]["rougeL"].update(low=float("nan")),
                "sets.news.rougeL.low is NaN where a finite number",
            ),
            (
                lambda all_: all_["sets"]["news"]["odd"].update(lacking="x" * 99),
                'sets.news.odd.lacking is "x{39}… where a count',
            ),
            (lambda all_: all_["sets"]["news"].update(seconds="1"), "sets.news.seconds"),
        ],
    )
    def test_a_key_is_named(self, folder: Path, edit: Callable[[Any], object], words: str) -> None:
        change(folder / "evaluation.json", edit)
        assert re.search(words, refused(folder))


class TestFiles:
    @pytest.mark.parametrize(
        "name", ["source.txt", "reference.txt", "output.txt", "headlines.jsonl", "pairs.tsv"]
    )
    def test_missing_or_of_another_length(self, folder: Path, name: str) -> None:
        path = folder / "news" / name
        text = path.read_text()
        path.write_text(text + text.splitlines(keepends=True)[-1])
        assert refused(folder).startswith(f"{path}: has 5 lines for 4 pairs")
        path.unlink()
        assert refused(folder).startswith(f"{path}: is not there")

    def test_lines_end_at_line_feeds_only(self, folder: Path) -> None:
        path = folder / "news" / "output.txt"
        path.write_text(path.read_text().replace(" ", "\u2028", 1))
        report_page([folder])

    def test_a_line_that_is_not_utf8(self, folder: Path) -> None:
        path = folder / "news" / "source.txt"
        lines = path.read_bytes().splitlines(keepends=True)
        path.write_bytes(b"".join([*lines[:2], b"\xff\n", *lines[3:]]))
        assert refused(folder).startswith(f"{path}: line 3 is not UTF-8")

    @pytest.mark.parametrize(
        ("line", "words"),
        [
            ("{", "line 2 is not JSON"),
            ("[]", "line 2 has no text under headline"),
            ('{"headline": null}', "line 2 has no text under headline"),
        ],
    )
    def test_an_answer_that_is_none(self, folder: Path, line: str, words: str) -> None:
        path = folder / "news" / "headlines.jsonl"
        lines = path.read_text().splitlines()
        path.write_text("\n".join([lines[0], line, *lines[2:]]) + "\n")
        assert refused(folder).startswith(f"{path}: {words}")

    @pytest.mark.parametrize(
        ("line", "words"),
        [
            ("0.5\t0.5\t0.5\t1\t1", "line 3 has 5 cells, not 6"),
            ("0.5\tx\t0.5\t1\t1\t1", "line 3: rouge2 is 'x', not a number from 0 to 1"),
            ("nan\t0\t0.5\t1\t1\t1", "line 3: rouge1 is 'nan'"),
            ("0.5\t0\t1.5\t1\t1\t1", "line 3: rougeL is '1.5'"),
            ("0.5\t0\t.\t1\t1\t1", "line 3: rougeL is '.'"),
            ("0.5\t0\t0.5\t-1\t1\t1", "line 3: repeating is '-1', not a count"),
            ("0.5\t0\t0.5\t1\t\t1", "line 3: lacking is '', not a count"),
        ],
    )
    def test_a_bad_cell(self, folder: Path, line: str, words: str) -> None:
        path = folder / "news" / "pairs.tsv"
        lines = path.read_text().splitlines()
        path.write_text("\n".join([*lines[:2], line, *lines[3:]]) + "\n")
        assert refused(folder).startswith(f"{path}: {words}")

    def test_a_table_without_names(self, folder: Path) -> None:
        path = folder / "news" / "pairs.tsv"
        path.write_text("\n".join(path.read_text().splitlines()[1:]))
        assert "line 1 does not name a column rouge1" in refused(folder)

    def test_more_columns_do_no_harm(self, folder: Path) -> None:
        path = folder / "news" / "pairs.tsv"
        before = report_page([folder])
        names, *lines = path.read_text().splitlines()
        wider = [f"rougeW\t{names}", *(f"0.1\t{line}" for line in lines)]
        path.write_text("\n".join(wider))
        assert report_page([folder]) == before


class TestAlignment:
    @pytest.mark.parametrize(
        ("edit", "words"),
        [
            (lambda all_: all_.update(words=3), "words is 3 where an object"),
            (
                lambda all_: all_["words"]["attention"]["groups"].pop("other"),
                "words.attention.groups.other is not there",
            ),
            (
                lambda all_: all_["words"]["attention"]["groups"]["same"].update(examples=[["a"]]),
                r"words.attention.groups.same.examples is \[\[\"a\"\]\]",
            ),
            (
                lambda all_: all_["quality"]["attention"].update(recall=None),
                "quality.attention.recall is null where a number",
            ),
            (lambda all_: all_["heatmaps"][1].update(pair=4), r"heatmaps.1.pair is 4 where a num"),
            (lambda all_: all_["heatmaps"][0].update(source="x"), "heatmaps.0.source is"),
            (lambda all_: all_["heatmaps"][0]["attention"].pop(), "heatmaps.0.attention is"),
            (
                lambda all_: all_["heatmaps"][0]["spm"][0].__setitem__(0, 7),
                "heatmaps.0.spm is .* numbers from 0 to 1",
            ),
        ],
    )
    def test_a_key_is_named(self, folder: Path, edit: Callable[[Any], object], words: str) -> None:
        path = folder / "news" / "alignment.json"
        change(path, edit)
        message = refused(folder)
        assert message.startswith(f"{path}: ")
        assert re.search(words, message)

    def test_broken(self, folder: Path) -> None:
        path = folder / "news" / "alignment.json"
        path.write_text("{")
        assert refused(folder).startswith(f"{path}: is not JSON")
