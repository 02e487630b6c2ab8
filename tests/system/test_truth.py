"""The measure of truth, bench/truth.py: its files, its detectors, what it prints."""

import json
import math
import random
import re
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from xml.etree import ElementTree

import pytest

import command
from ledeline.core.errors import CorpusError, LedelineError, ScoreError
from pages import ROOT

sys.path.append(str(ROOT / "bench"))

import truth_detectors as detectors
import truth_labels
import truth_report as report
from truth_figure import risk_figure

HERE = Path(__file__).parent / "truth"
LABELS, PAIRS = HERE / "labels.jsonl", HERE / "pairs.jsonl"
PROGRAM = ROOT / "bench" / "truth.py"
ONE: dict[str, Any] = {
    "lede": "0123456789abcdef",
    "writer": "beam20",
    "headline": "Rain falls",
    "part": "test",
    "labels": ["ok"],
}


# --- files ----------------------------------------------------------------------------------------


def written(tmp_path: Path, *rows: object) -> Path:
    path = tmp_path / "labels.jsonl"
    lines = [row if isinstance(row, str) else json.dumps(row) for row in rows]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


BAD_LINES = [
    ("{", "not JSON"),
    ([1], "not a JSON object"),
    ({"lede": "0123456789abcdef"}, "there is no 'writer'"),
    ({**ONE, "label": "ok"}, "'label' is not known"),
    ({**ONE, "lede": "Rain fell."}, "'lede' must be 16 hex digits"),
    ({**ONE, "lede": 3}, "'lede' must be 16 hex digits"),
    ({**ONE, "writer": ""}, "'writer' must be a name"),
    ({**ONE, "part": "valid"}, "'part' must be tune, test, train or final, not 'valid'"),
    ({**ONE, "part": ["test"]}, "'part' must be"),
    ({**ONE, "headline": " "}, "'headline' must be a text"),
    ({**ONE, "writer": "publisher"}, "a publisher's 'headline' must be left out"),
    ({**ONE, "labels": []}, "'labels' must be a list of one or two"),
    ({**ONE, "labels": ["ok"] * 3}, "'labels' must be a list of one or two"),
    ({**ONE, "labels": ["true"]}, "a label must be ok, clumsy, added or false, not 'true'"),
    ({**ONE, "labels": [["ok"]]}, "a label must be"),
    ({**ONE, "kinds": []}, "'kinds' must be a list with one entry for each label"),
    ({**ONE, "words": [3]}, "an entry of 'words' must be a text or null"),
    ({**ONE, "headline": "Rain"}, "this headline was already judged in"),
    ({**ONE, "writer": "greedy", "part": "tune"}, "a lede belongs to one part"),
]


class TestLabels:
    @pytest.mark.parametrize(("row", "said"), BAD_LINES)
    def test_a_bad_line_is_named(self, row: object, said: str, tmp_path: Path) -> None:
        path = written(tmp_path, {**ONE, "headline": "Rain"}, "", row)
        with pytest.raises(CorpusError) as error:
            truth_labels.load([path])
        assert str(error.value).startswith(f"{path}: line 3: ")
        assert said in str(error.value)
        assert "\n" not in str(error.value)

    def test_a_good_line_is_read(self, tmp_path: Path) -> None:
        row = {**ONE, "labels": ["false", "ok"], "kinds": ["role", ""], "words": ["Rain", None]}
        (one,) = truth_labels.load([written(tmp_path, row)])
        assert one.kinds == ("role", None)
        assert one.share("false") == 0.5
        assert not one.is_all("false")

    def test_a_file_that_is_not_there_is_said(self, tmp_path: Path) -> None:
        with pytest.raises(CorpusError, match="no such file"):
            truth_labels.load([tmp_path / "nothing.jsonl"])

    def test_parts_are_chosen(self) -> None:
        assert len(truth_labels.load([LABELS], ["test"])) == 10
        assert len(truth_labels.load([LABELS])) == 11
        with pytest.raises(CorpusError, match="no judged headline in part train"):
            truth_labels.load([LABELS], ["train"])

    def test_ledes_and_publishers_headlines_are_found(self) -> None:
        found = truth_labels.find(truth_labels.load([LABELS]), [PAIRS])
        assert (found.missing, found.ambiguous, len(found.items)) == (0, 0, 11)
        assert all(truth_labels.lede_hash(one.lede) == one.judged.lede for one in found.items)
        theirs = [one.headline for one in found.items if one.judged.writer == "publisher"]
        assert theirs == ["Strangers Help Driver", "Oster Library at Risk"]

    def test_what_is_not_found_is_counted_by_lede(self, tmp_path: Path) -> None:
        lines = PAIRS.read_text("utf-8").splitlines()
        some = tmp_path / "some.jsonl"
        some.write_text("\n".join([*lines[2:], lines[2].replace("at Risk", "Closes")]) + "\n")
        found = truth_labels.find(truth_labels.load([LABELS]), [some])
        assert (found.missing, found.ambiguous, len(found.items)) == (2, 1, 6)

    def test_a_file_with_ledes_is_converted(self, tmp_path: Path) -> None:
        lede = "Rain fell."
        rows = [
            {"lede": lede, "headline": "Rain", "writer": "model", "label_a": "false",
             "label_b": "ok", "kind_a": "time", "kind_b": "", "words_a": "Rain", "words_b": ""},
            {"lede": lede, "headline": "Wet", "writer": "publisher", "label_a": "ok"},
        ]  # fmt: skip
        found = truth_labels.convert(written(tmp_path, *rows), "test", ["a", "b"], "beam20")
        assert found.pairs == [{"lede": lede, "headline": "Wet"}]
        first, second = truth_labels.load([written(tmp_path, *found.labels)])
        assert (first.headline, first.labels, first.kinds) == (
            "Rain",
            ("false", "ok"),
            ("time", None),
        )
        assert (second.headline, second.labels) == (None, ("ok",))


# --- detectors ------------------------------------------------------------------------------------


class TestDetectors:
    PAIR = ("Rain fell in Oslo.", "Snow fell in Oslo’s")

    def test_overlap_counts_words(self) -> None:
        assert detectors.by_overlap([self.PAIR, ("Rain.", ""), ("Rain.", "RAIN")]) == [
            (0.5, None),
            (0.0, None),
            (1.0, None),
        ]

    def test_score_is_the_mean_probability_of_the_bundled_model(self) -> None:
        from ledeline import Headliner

        lede = "Two men in an old white pickup helped a driver after a crash in Ohio on Monday."
        (best,) = Headliner.load().generate_batch([lede])
        pairs = [
            (lede, best.text),
            (lede, "Purple monkeys sing of quarterly tax returns"),
            ("", "x"),
        ]
        ours, odd, none = (one.support for one in detectors.by_score(pairs))
        assert 1 > ours > 10 * odd > 0
        assert none == 0

    def test_support_is_that_of_the_checker(self, monkeypatch: pytest.MonkeyPatch) -> None:
        class Checker:
            @classmethod
            def load(cls) -> "Checker":
                return cls()

            def check_batch(self, pairs: list[tuple[str, str]]) -> list[Any]:
                doubt = SimpleNamespace(words="Snow", kind="added", why="")
                return [SimpleNamespace(support=0.25, doubts=[doubt]) for _ in pairs]

        name = "ledeline.inference.checks.checker"
        monkeypatch.setitem(sys.modules, name, SimpleNamespace(Checker=Checker))
        assert detectors.named("support")([self.PAIR]) == [(0.25, (("Snow", "added"),))]
        monkeypatch.setitem(sys.modules, name, None)
        with pytest.raises(ScoreError, match="this ledeline cannot check headlines"):
            detectors.named("support")([self.PAIR])

    def test_supports_come_from_a_file(self, tmp_path: Path) -> None:
        lede, headline = self.PAIR
        row = {"lede": truth_labels.lede_hash(lede), "headline": headline, "support": 0.25}
        row["doubts"] = [{"words": "Snow", "kind": "added", "why": "the lede has rain"}]
        detect = detectors.named(f"file:{written(tmp_path, row)}")
        assert detect([self.PAIR]) == [(0.25, (("Snow", "added"),))]
        with pytest.raises(ScoreError, match="1 of 2 headlines have no support there"):
            detect([self.PAIR, (lede, "Rain")])

    @pytest.mark.parametrize(
        "row", ["{", {"lede": "x"}, {"lede": "x", "headline": "y", "support": 2}]
    )
    def test_a_bad_line_is_named(self, row: object, tmp_path: Path) -> None:
        with pytest.raises(ScoreError, match="line 1: "):
            detectors.named(f"file:{written(tmp_path, row)}")

    def test_an_unknown_detector_is_refused(self) -> None:
        with pytest.raises(ScoreError, match="'guess' is not a detector; they are support, score"):
            detectors.named("guess")

    def test_files_are_called_by_their_stems(self) -> None:
        names = ["overlap", "file:a/x.jsonl", "file:b/x.jsonl", "file:a/y.jsonl"]
        assert [detectors.label(one, names) for one in names] == [*names[:3], "y"]

    def test_an_answer_that_is_none_is_refused(self) -> None:
        for support in (1.5, math.nan):
            answer = [detectors.Verdict(support)]
            with pytest.raises(LedelineError, match="gave a support of"):
                detectors.run("odd", lambda pairs, answer=answer: answer, [self.PAIR])
        with pytest.raises(LedelineError, match="gave 0 supports for 1 headlines"):
            detectors.run("odd", lambda pairs: [], [self.PAIR])


# --- what is found --------------------------------------------------------------------------------


class TestReport:
    JUDGED = truth_labels.load([LABELS], ["test"])

    def test_shares_are_counted(self) -> None:
        found = report.count(self.JUDGED)
        ours = found["shares"][0]
        assert (ours["writer"], ours["n"]) == ("beam20", 4)
        assert [one["false"]["count"] for one in ours["readings"]] == [2, 1]
        assert (ours["all"]["false"]["count"], ours["mean"]["false"]["share"]) == (1, 0.375)
        assert found["kinds"][0]["false"] == {"role": 0.5, "relation": 0.5, "number": 0.5}
        both = found["agreement"][-1]
        assert (both["writer"], both["n"]) == ("all writers", 10)
        assert both["labels"]["agreement"] == 0.8
        assert both["false"]["agreement"] == 0.9

    def test_writers_are_compared_on_the_same_ledes(self) -> None:
        found = report.compare(self.JUDGED, "beam20", "ranked", report.Draws(num_draws=100))
        rows = {(one["label"], one["by"]): one for one in found["differences"]}
        assert found["n"] == 4
        assert rows["false", "all readings"]["difference"] == 0
        assert (rows["false", "reading 1"]["only_a"], rows["false", "reading 1"]["only_b"]) == (
            2,
            1,
        )
        assert rows["false", "reading 1"]["p"] == 1
        assert rows["false", "mean of readings"]["difference"] == -0.125
        assert rows["false", "mean of readings"]["p"] is None
        assert rows["ok", "reading 1"]["difference"] == 0.5

    def test_a_writer_has_one_headline_of_a_lede(self) -> None:
        twice = [*self.JUDGED, self.JUDGED[0]._replace(headline="Another")]
        with pytest.raises(ScoreError, match="beam20 has several headlines of the lede"):
            report.compare(twice, "beam20", "ranked", report.Draws())
        with pytest.raises(ScoreError, match="no judged headline is of 'greedy'"):
            report.compare(twice, "greedy", "ranked", report.Draws())

    def test_doubts_are_judged(self) -> None:
        items = truth_labels.find(self.JUDGED, [PAIRS]).items[:4]
        doubts: list[list[detectors.Doubted]] = [
            [detectors.Doubted("stranded by", "role"), detectors.Doubted("Anna", "name")],
            [detectors.Doubted("28 million", "number")],
            [detectors.Doubted("may", "number")],
            [],
        ]
        verdicts = [detectors.Verdict(0.5, tuple(one)) for one in doubts]
        found = report.detect(items, verdicts, "false", report.Draws(num_draws=10))["doubts"]
        rows = {one["kind"]: one for one in found["kinds"]}
        assert (rows["role"]["precision"]["share"], rows["role"]["same_words"]["share"]) == (1, 1)
        assert (rows["name"]["with_words"], rows["name"]["same_words"]["share"]) == (1, 0)
        assert (rows["number"]["doubts"], rows["number"]["precision"]["share"]) == (2, 0.25)
        assert rows["number"]["with_words"] == 1
        assert (rows["any"]["doubts"], rows["any"]["headlines"]) == (4, 3)
        assert (found["without"]["n"], found["without"]["false"]["share"]) == (1, 0)

    def test_each_kind_of_error_is_looked_for(self) -> None:
        items = truth_labels.find(self.JUDGED, [PAIRS]).items[:4]
        verdicts = [detectors.Verdict(one) for one in (0.1, 0.9, 0.8, 0.7)]
        found = report.detect(items, verdicts, "false", report.Draws(num_draws=10))
        rows = {one["kind"]: one for one in found["by_kind"]}
        assert {kind: one["n"] for kind, one in rows.items()} == {
            "role": 0.5,
            "relation": 0.5,
            "number": 0.5,
        }
        assert rows["role"]["auroc"] == 1
        assert rows["number"]["auroc"] == pytest.approx(0.25 / 2.5)
        assert rows["role"]["found"] == [1, 1]

    def test_dice_know_nothing(self) -> None:
        dice = random.Random(1)
        items = truth_labels.find(self.JUDGED, [PAIRS]).items * 100
        verdicts = [detectors.Verdict(dice.random()) for _ in items]
        found = report.detect(items, verdicts, "false", report.Draws(num_draws=50))
        low, high = found["auroc"]["interval"]
        assert low < found["auroc"]["value"] < high
        assert found["auroc"]["value"] == pytest.approx(0.5, abs=0.08)
        assert "doubts" not in found


CURVES = {"a & b": [(0.5, 0.1), (1.0, 0.2)], "other": [(0.5, 0.05), (1.0, 0.2)]}


class TestFigure:
    def test_it_has_a_line_for_each(self) -> None:
        drawing = ElementTree.fromstring(risk_figure(CURVES, 0.04))
        names = {"svg": "http://www.w3.org/2000/svg"}
        lines = drawing.findall("svg:polyline", names)
        assert [one.findtext("svg:title", namespaces=names) for one in lines] == list(CURVES)
        assert "publishers: 4.0 %" in drawing.attrib["aria-label"]
        assert "a & b: 10.0 % at half" in drawing.attrib["aria-label"]

    def test_all_lies_within(self) -> None:
        drawing = risk_figure({"one": [(0.06, 0.9), (1.0, 0.33)]}, 0.97)
        for points in re.findall(r'points="([^"]+)"', drawing):
            places = [tuple(map(float, one.split(","))) for one in points.split()]
            assert all(0 <= x <= 640 and 0 <= y <= 400 for x, y in places)
        heights = [float(one) for one in re.findall(r' y[12]="([^"]+)"', drawing)]
        assert min(heights) >= 30

    def test_it_can_be_read_by_day_and_by_night(self) -> None:
        drawing = risk_figure(CURVES, None)
        day, night = drawing.split("@media (prefers-color-scheme: dark)")
        for part in (day, night):
            page = re.search(r"\.page { fill: (#\w+)", part)
            assert page is not None
            for colour in re.findall(r"(?:text|text\.s\d) { fill: (#\w+)", part):
                assert contrast(page[1], colour) >= 4.5
        assert "publisher" not in night.split("</style>")[1]


def contrast(first: str, second: str) -> float:
    """Of two colours, as WCAG has it."""
    light = []
    for colour in (first, second):
        parts = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
        linear = [
            one / 12.92 if one <= 0.04045 else ((one + 0.055) / 1.055) ** 2.4 for one in parts
        ]
        light.append(0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2])
    return (max(light) + 0.05) / (min(light) + 0.05)


class TestProgram:
    def test_it_prints_json(self, tmp_path: Path) -> None:
        figure = tmp_path / "risk.svg"
        words = ["detect", LABELS, "--pairs", PAIRS, "--part", "test", "--detector", "overlap"]
        done = command.program(PROGRAM, *words, "--draws", "20", "--json", "--figure", figure)
        assert done.returncode == 0, done.stderr
        found = json.loads(done.stdout)
        assert found["writers"] == ["beam20", "ranked"]
        assert found["publishers"] == 0
        assert found["detectors"]["overlap"]["n"] == 8
        ElementTree.parse(figure)

    @pytest.mark.parametrize(
        ("words", "said"),
        [
            (["count", "nothing.jsonl"], "nothing.jsonl: no such file"),
            (["compare", str(LABELS), "--a", "beam20", "--b", "x"], "'x'; the writers are"),
            (["detect", str(LABELS), "--pairs", "no.jsonl", "--detector", "overlap"], "no.jsonl"),
            (["detect", str(LABELS), "--pairs", str(PAIRS), "--detector", "x"], "not a detector"),
            (["detect", str(LABELS), "--pairs", str(PAIRS), "--writer", "x"], "no headline is of"),
            ([], "name a command"),
        ],
    )
    def test_a_mistake_is_a_sentence(self, words: list[str], said: str, tmp_path: Path) -> None:
        done = command.program(PROGRAM, *words, cwd=tmp_path)
        assert done.returncode == 2
        assert said in done.stderr
        assert "Traceback" not in done.stderr
