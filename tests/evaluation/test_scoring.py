"""The scores of many pairs: means, intervals, differences, lines."""

from pathlib import Path

import numpy as np
import pytest

from ledeline import rouge
from ledeline.evaluation import scoring
from ledeline.evaluation.significance import bootstrap_intervals, compare
from ledeline.rouge import Rouge, Score

# Every number is another one, so that none can stand in another's place.
SCORES = [
    Rouge(*(Score(*(0.01 * (9 * pair + 3 * measure + part) for part in range(3))) for measure in range(3)))
    for pair in range(8)
]  # fmt: skip
WEIGHTED = [Rouge(one.rouge1, one.rouge2, one.rouge_l, Score(0.9, 0.8, 0.7)) for one in SCORES]


def test_measures_are_those_that_were_scored() -> None:
    assert list(scoring.measures(SCORES)) == ["rouge1", "rouge2", "rougeL"]
    assert list(scoring.measures(WEIGHTED)) == ["rouge1", "rouge2", "rougeL", "rougeW"]


def test_means() -> None:
    mean = rouge.mean(SCORES)
    assert scoring.means(SCORES) == {
        name: {"precision": one.precision, "recall": one.recall, "f1": one.f1}
        for name, one in (
            ("rouge1", mean.rouge1),
            ("rouge2", mean.rouge2),
            ("rougeL", mean.rouge_l),
        )
    }
    assert scoring.means(WEIGHTED)["rougeW"] == pytest.approx(
        {"precision": 0.9, "recall": 0.8, "f1": 0.7}
    )


def test_a_table_has_a_column_for_each_measure() -> None:
    for part, name in enumerate(scoring.PARTS):
        table = scoring.score_matrix(SCORES, name)
        assert table.shape == (8, 3)
        assert table[5].tolist() == pytest.approx(
            [0.45 + part * 0.01 + 0.03 * measure for measure in range(3)]
        )


@pytest.mark.parametrize("scores", [SCORES, WEIGHTED])
def test_each_interval_is_of_its_own_mean(scores: list[Rouge]) -> None:
    found = scoring.mean_intervals(scores, seed=5)
    for name, means in scoring.means(scores).items():
        for part, mean in means.items():
            interval = found[name][part]  # type: ignore[index]
            column = [getattr(getattr(one, scoring.measures(scores)[name]), part) for one in scores]
            (wanted,) = bootstrap_intervals(np.array(column)[:, None], seed=5)
            assert interval == pytest.approx(wanted, abs=1e-9)
            assert interval.low <= mean + 1e-9
            assert interval.high >= mean - 1e-9


def test_comparisons_are_of_the_part_that_is_asked_for() -> None:
    others = [
        Rouge(one.rouge1, Score(0.5, one.rouge2.recall, 0.4), Score(0.1, 0.2, 0.3))
        for one in SCORES
    ]
    found = scoring.comparisons(SCORES, others, "recall", seed=3)
    assert found["rouge1"].difference == found["rouge2"].difference == 0
    assert found["rouge1"].randomisation_p == 1
    recalls = np.array([[one.rouge_l.recall] for one in SCORES])
    assert found["rougeL"] == pytest.approx(compare(recalls, np.full_like(recalls, 0.2), seed=3)[0])


def test_lines() -> None:
    lines = list(scoring.per_pair_lines(SCORES))
    assert lines[0] == "rouge1\trouge2\trougeL"
    assert lines[1] == "0.02000\t0.05000\t0.08000"
    assert len(lines) == 9
    assert next(scoring.per_pair_lines(WEIGHTED)).endswith("\trougeW")


class TestFiles:
    @pytest.fixture
    def files(self, tmp_path: Path) -> dict[str, str]:
        texts = {"out": "a b\nc\n", "other": "a\nx\n", "first": "a b\nc d\n", "second": "b\nc\n"}
        for name, text in texts.items():
            (tmp_path / name).write_text(text)
        return {name: str(tmp_path / name) for name in texts}

    def test_references_belong_to_the_pair_not_to_the_file(self, files: dict[str, str]) -> None:
        scored = scoring.score_files(
            files["out"], [files["first"], files["second"]], rouge.Settings()
        )
        wanted = rouge.score_all(["a b", "c"], [("a b", "b"), ("c d", "c")])
        assert scored.scores == wanted
        assert scored.summary["pairs"] == 2
        assert scored.summary["signature"] == rouge.signature(rouge.Settings(), 2)
        assert "compare" not in scored.summary

    def test_the_other_system_is_scored_against_the_same_references(
        self, files: dict[str, str]
    ) -> None:
        scored = scoring.score_files(
            files["out"], [files["first"]], rouge.Settings(), compare=files["other"]
        )
        theirs = rouge.mean(rouge.score_all(["a", "x"], ["a b", "c d"])).rouge1.f1
        ours = rouge.mean(scored.scores).rouge1.f1
        assert scored.summary["compare"]["rouge1"]["mean"] == theirs
        assert scored.summary["compare"]["rouge1"]["difference"] == pytest.approx(theirs - ours)

    def test_a_seed_says_which_samples(self, files: dict[str, str], tmp_path: Path) -> None:
        for name, step in (("out", 3), ("first", 2)):
            lines = (" ".join("abcdefg"[: n % 5 + 1 : step]) for n in range(30))
            (tmp_path / name).write_text("".join(f"{line}\n" for line in lines))
        found = [
            scoring.score_files(files["out"], [files["first"]], rouge.Settings(), seed=seed).summary
            for seed in (1, 1, 2)
        ]
        assert found[0] == found[1]
        assert found[0]["intervals"] != found[2]["intervals"]
