"""Evaluation folders without a model: what is written is what is read, key by key."""

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ledeline import rouge
from ledeline.config import SearchConfig
from ledeline.core.errors import ScoreError
from ledeline.evaluation.alignment_json import (
    AlignmentSummary,
    HeatMap,
    PairHeatMap,
    WordPairGroup,
    WordPairTable,
    read_alignment,
)
from ledeline.evaluation.audit import AuditSummary, audit
from ledeline.evaluation.check_counts import CheckCounts
from ledeline.evaluation.evaluation_folder import EvaluationFolder
from ledeline.evaluation.json_fields import JsonFields
from ledeline.evaluation.links import alignment_score
from ledeline.evaluation.summary import (
    CheckSettings,
    EvaluationSettings,
    EvaluationSummary,
    MeasureScore,
    Samples,
    SetSummary,
)
from ledeline.inference.checks.check import Check
from ledeline.inference.checks.doubt import Doubt

OUTPUTS = ["oil oil rises", "rain in Oslo"]
REFERENCES = ["oil rises", "rain falls in Oslo"]
SOURCES = ["the price of oil rises", "in Oslo there is rain"]
SCORES = rouge.score_all(OUTPUTS, REFERENCES)
ODD = audit(OUTPUTS, REFERENCES, SOURCES)
MEANS = {
    name: MeasureScore(one.precision, one.recall, one.f1, 0.1, 0.9)
    for name, one in zip(
        ("rouge1", "rouge2", "rougeL"),
        (rouge.mean(SCORES).rouge1, rouge.mean(SCORES).rouge2, rouge.mean(SCORES).rouge_l),
        strict=True,
    )
}
SET = SetSummary(
    files=("news.csv",),
    checksum="ab",
    num_pairs=2,
    signature="ROUGE",
    scores=MEANS,
    odd=AuditSummary.of(ODD),
    num_truncated=1,
    num_empty=0,
    seconds=1.5,
    command="ledeline evaluate --test news.csv",
)
SUMMARY = EvaluationSummary(
    EvaluationSettings(
        system="EncDec",
        models=("runs/é",),
        weights=("cd",),
        profile="natural",
        compared_in="paper",
        precision="int8",
        device="cpu",
        search=SearchConfig(beam=3),
        replace_unknown=False,
        scoring=rouge.Settings(stem=False),
        samples=Samples(word_pairs=5, heat_maps=2, seed=1),
    ),
    command="ledeline evaluate",
    version="0.1.0",
    commit=None,
    date="2026-01-02T03:04:05+00:00",
    sets={"news": SET},
)
ALIGNMENT = AlignmentSummary(
    words={
        "attention": WordPairTable(
            2,
            9,
            1,
            {
                "same": WordPairGroup(5, (("oil", "oil", 3),)),
                "inflection": WordPairGroup(2, ()),
                "other": WordPairGroup(1, (("rises", "price", 1),)),
            },
        )
    },
    quality={
        "attention": alignment_score([frozenset({(0, 0)})], [frozenset({(0, 0), (1, 1)})], [3]),
        "diagonal": alignment_score([frozenset({(0, 0)})], [frozenset({(0, 0), (1, 1)})]),
    },
    heat_maps=(
        PairHeatMap(1, HeatMap(("in", "Oslo"), ("rain (in)",), ((0.75, 0.25),), None, None)),
        PairHeatMap(
            0,
            HeatMap(
                ("oil",), ("oil (oil)",), ((1.0,),), ("oil (oil)", "<pad> (x)"), ((0.5,), (0.125,))
            ),
        ),
    ),
)

CHECK = Check(0.25, (Doubt(4, 7, "oil", "added", 'the lede says "oil"'),))
CHECKING = CheckSettings(True, "support", constrain=True, min_support=0.2, verifier="ef")


@pytest.fixture
def folder(tmp_path: Path) -> EvaluationFolder:
    """A folder with all files."""
    written = EvaluationFolder(tmp_path / "e")
    place = written.test_set("news")
    place.path.mkdir(parents=True)
    place.write_texts(SOURCES, REFERENCES, OUTPUTS, ["Oil rises!", "Rain in Oslo?"])
    answers = [
        {"source": "The price of oil rises.", "headline": "Oil oil rises", "truncated": True},
        {"source": None, "headline": "Rain in Oslo", "truncated": False},
    ]
    place.headlines_path.write_text("".join(f"{json.dumps(one)}\n" for one in answers))
    place.write_pairs(SCORES, ODD)
    place.write_alignment(ALIGNMENT)
    written.write_summary(SUMMARY)
    return written


def test_what_was_written_is_read(folder: EvaluationFolder) -> None:
    found = folder.read()
    assert (found.system, found.command) == ("EncDec", "ledeline evaluate")
    assert found.settings["models"] == ("runs/é",)
    assert found.settings["commit"] == ()
    assert found.settings["samples"] == ("word_pairs: 5", "heat_maps: 2", "seed: 1")
    news = found.sets["news"]
    assert news.summary == SET
    assert news.audit == ODD
    assert news.alignment == ALIGNMENT
    assert news.checks == (None, None)
    assert found.settings["checking"] == ()
    assert news.pair_scores.tolist() == [
        [round(one, 5) for one in (score.rouge1.f1, score.rouge2.f1, score.rouge_l.f1)]
        for score in SCORES
    ]
    assert news.texts.sources == tuple(SOURCES)
    assert news.texts.references == tuple(REFERENCES)
    assert news.texts.outputs == tuple(OUTPUTS)
    assert news.texts.golds == ("Oil rises!", "Rain in Oslo?")
    assert news.texts.headlines == ("Oil oil rises", "Rain in Oslo")
    assert news.texts.ledes == ("The price of oil rises.", SOURCES[1])  # words where it was no text
    truncated = [one.truncated for one in folder.test_set("news").read_headlines(2)]
    assert truncated == [True, False]


def test_the_summary_has_the_keys_of_the_guide(folder: EvaluationFolder) -> None:
    found = json.loads(folder.summary_path.read_text())
    assert list(found) == [
        *("format", "system", "models", "weights", "profile", "compared_in", "precision"),
        *("device", "search", "replace_unknown", "scoring", "samples"),
        *("command", "version", "commit", "date", "sets"),
    ]
    assert found["format"] == 1
    assert found["search"]["beam"] == 3
    assert found["scoring"]["stem"] is False
    news = found["sets"]["news"]
    assert list(news) == [
        *("files", "checksum", "pairs", "signature", "rouge1", "rouge2", "rougeL"),
        *("odd", "truncated", "empty", "seconds", "command"),
    ]
    assert list(news["rouge1"]) == ["precision", "recall", "f1", "low", "high"]
    assert news["odd"] == {
        "pairs": 2,
        "repeating": 1,
        "lacking": 1,
        "irrelevant": 0,
        "histograms": {"repeating": [1, 1], "lacking": [1, 1], "irrelevant": [2]},
    }


def written_lines(folder: EvaluationFolder) -> list[dict[str, Any]]:
    text = folder.test_set("news").headlines_path.read_text()
    return [json.loads(line) for line in text.splitlines()]


def write_headlines(folder: EvaluationFolder, *lines: dict[str, Any]) -> None:
    path = folder.test_set("news").headlines_path
    path.write_text("".join(f"{json.dumps(one)}\n" for one in lines))


def test_checks_are_read(folder: EvaluationFolder) -> None:
    first, second = written_lines(folder)
    left_out = {"headline": "", "support": 0.1, "warnings": [{"kind": "left out", "message": "x"}]}
    write_headlines(folder, first | CHECK.as_dict(), second | left_out)
    settings = replace(SUMMARY.settings, checking=CHECKING)
    counts = CheckCounts.of([CHECK], num_left_out=1)
    sets = {"news": replace(SET, checks=counts)}
    folder.write_summary(replace(SUMMARY, settings=settings, sets=sets))
    found = folder.read()
    assert found.sets["news"].checks == (CHECK, Check(0.1))
    assert found.sets["news"].summary.checks == counts
    assert [one.left_out for one in folder.test_set("news").read_headlines(2)] == [False, True]
    assert found.settings["checking"] == (
        *("check: true", "rank: support", "constrain: true", "min_support: 0.2", "verifier: ef"),
    )
    written = json.loads(folder.summary_path.read_text())
    assert list(written).index("checking") == list(written).index("replace_unknown") + 1
    assert list(written["sets"]["news"]).index("checks") == 8  # behind odd


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"support": 1.5}, "support is not a number from 0 to 1"),
        ({"support": True}, "support is not a number from 0 to 1"),
        ({"support": float("nan")}, "support is not a number from 0 to 1"),
        ({"doubts": {}}, "doubts is not a list"),
        ({"doubts": ["x"]}, "a doubt is not an object"),
        ({"doubts": [{"start": 0, "end": 99}]}, "no start and end within the headline"),
        ({"doubts": [{"start": 3, "end": 2}]}, "no start and end within the headline"),
        ({"doubts": [{"start": 0, "end": 3, "kind": ["name"]}]}, "a kind that is none of number, "),
        ({"doubts": [{"start": 0, "end": 3, "kind": "name"}]}, "no text under why"),
    ],
)
def test_a_check_that_cannot_be_is_named(
    folder: EvaluationFolder, changes: dict[str, Any], sentence: str
) -> None:
    first, second = written_lines(folder)
    write_headlines(folder, first, second | CHECK.as_dict() | changes)
    with pytest.raises(
        ScoreError, match=rf"headlines\.jsonl: line 2: .*{sentence}.*evaluate again"
    ):
        folder.read()


def test_a_summary_that_is_read_is_written_again(folder: EvaluationFolder) -> None:
    """As it is when a folder is resumed."""
    weighted = replace(SET, scores={**MEANS, "rougeW": MEANS["rouge1"]})
    unknown = AuditSummary.of(audit(OUTPUTS, REFERENCES))
    checked = replace(SET, checks=CheckCounts.of([CHECK], num_left_out=1))
    for one in (SET, weighted, replace(SET, odd=unknown, seconds=None), checked):
        fields = JsonFields(folder.summary_path, json.loads(json.dumps(one.as_dict())))
        assert SetSummary.read(fields) == one


def test_folders_of_others_may_lack_what_is_not_compared(folder: EvaluationFolder) -> None:
    found = json.loads(folder.summary_path.read_text())
    for key in ("checksum", "command"):
        del found["sets"]["news"][key]
    del found["sets"]["news"]["odd"]["histograms"]
    folder.summary_path.write_text(json.dumps(found))
    assert folder.read().sets["news"].summary.odd.total == ODD.total


@pytest.mark.parametrize("value", [[1, -1], [True], "x"])
def test_a_histogram_of_counts(folder: EvaluationFolder, value: Any) -> None:
    found = json.loads(folder.summary_path.read_text())
    found["sets"]["news"]["odd"]["histograms"]["lacking"] = value
    folder.summary_path.write_text(json.dumps(found))
    with pytest.raises(ScoreError, match=r"sets\.news\.odd\.histograms\.lacking is .* is needed"):
        folder.read()


def test_alignment_is_one_line_of_json(folder: EvaluationFolder) -> None:
    path = folder.test_set("news").path / "alignment.json"
    assert path.read_text().count("\n") == 1
    found = json.loads(path.read_text())
    assert list(found) == ["words", "quality", "heatmaps"]
    assert list(found["heatmaps"][0]) == [
        *("pair", "source", "attention_rows", "attention", "spm_rows", "spm")
    ]
    without_gold = replace(ALIGNMENT, quality=None)
    folder.test_set("news").write_alignment(without_gold)
    assert read_alignment(path, 2) == without_gold
    path.unlink()
    assert read_alignment(path, 2) is None


def test_reading_needs_neither_torch_nor_jinja2() -> None:
    program = (
        "import sys, ledeline.evaluation.evaluation_folder;"
        "sys.exit(any(name in sys.modules for name in ('torch', 'jinja2')))"
    )
    assert subprocess.run([sys.executable, "-c", program]).returncode == 0
