import io

import pytest
from rich.console import Console

from ledeline.cli.views.training import TrainingView, duration, result_text, sample_text
from ledeline.data.batches import BatchPosition
from ledeline.rouge import Rouge, Score
from ledeline.text.profiles import NATURAL
from ledeline.train.callbacks import RunStart, StepReport
from ledeline.train.loop import TrainResult
from ledeline.train.loss_accumulator import MeanLosses
from ledeline.train.state import TrainState
from ledeline.train.validation import Sample, Validation

LOSSES = MeanLosses(256, {"target": 41.5, "source": 1.875}, 2.4137)
REPORT = StepReport(120, 3, 15, 20, 50, LOSSES, 3.25, 0.001, 812.4, 3723.0)
SAMPLE = Sample(
    source=["Tokyo", "stocks", "rose", "sharply", "￭,"],
    reference=["Tokyo", "stocks", "jump"],
    headline=["Tokyo", "stocks", "rise", "!￭"],
    links=frozenset({(0, 0), (1, 1), (2, 2), (3, 2)}),
)
VALIDATION = Validation(
    150, 3, LOSSES, Rouge(*(Score(0, 0, f1) for f1 in (0.4012, 0.18, 0.37))), 500, [SAMPLE], True
)


def shown(*, terminal: bool, **events: object) -> str:
    console = Console(file=io.StringIO(), force_terminal=terminal, width=200, color_system=None)
    with TrainingView(console, NATURAL) as view:
        for name, event in events.items():
            getattr(view, name)(event)
        if terminal:
            view._bar.refresh()
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


@pytest.mark.parametrize("terminal", [True, False])
def test_a_report_has_losses_norm_rate_and_time_left(terminal: bool) -> None:
    text = shown(terminal=terminal, on_step=REPORT)
    for part in (
        "epoch 3/15",
        "20/50",
        "target 41.500",
        "source 1.875",
        "per token 2.414",
        "norm 3.25",
        "812 pairs/s",
        "left 1:02:03",
    ):
        assert part in text


def test_without_a_terminal_lines_come_now_and_then() -> None:
    console = Console(file=io.StringIO(), force_terminal=False, width=200)
    with TrainingView(console, NATURAL) as view:
        for _ in range(50):
            view.on_step(REPORT)
    assert isinstance(console.file, io.StringIO)
    assert console.file.getvalue().count("\n") == 1


def test_validation_shows_scores_and_samples() -> None:
    text = shown(terminal=False, on_validation=VALIDATION)
    assert "epoch 3  step 150  valid" in text
    assert "R-1 40.12  R-2 18.00  R-L 37.00  (500 headlines, greedy)  best so far" in text
    assert "reference  Tokyo stocks jump" in text


def test_a_sample_says_what_came_from_where() -> None:
    lines = sample_text(SAMPLE, NATURAL).plain.splitlines()
    assert [line.split()[0] for line in lines] == ["lede", "reference", "headline", "aligned"]
    assert lines[0].split()[1:] == ["Tokyo", "stocks", "rose", "sharply", ","]
    assert lines[3].split("    ")[1] == "Tokyo←Tokyo  stocks←stocks  rise←rose sharply  !←∅  "


def test_used_words_are_bold_and_dropped_ones_dim() -> None:
    text = sample_text(SAMPLE, NATURAL)
    styles = {text.plain[span.start : span.end]: str(span.style) for span in text.spans}
    assert styles["Tokyo"] == "not dim"  # the last one, in the alignment
    assert styles["rose"] == "bold not dim"
    assert styles[","] == "dim"


def test_the_beginning_names_the_system() -> None:
    text = shown(
        terminal=False,
        on_start=RunStart("EncDec+SPM", 14_000_000, 5131, 1_566_339, 15, "cpu", 2, 40),
    )
    assert "EncDec+SPM: 14,000,000 parameters, 5,131 sub-words, 1,566,339 pairs" in text
    assert "cpu, 2 processes" in text
    assert "resuming after step 40" in text


@pytest.mark.parametrize(("seconds", "text"), [(0, "0:00:00"), (59.6, "0:01:00"), (-3, "0:00:00")])
def test_durations(seconds: float, text: str) -> None:
    assert duration(seconds) == text


def test_the_result_says_where_the_model_is_or_how_to_resume(tmp_path: object) -> None:
    from pathlib import Path

    train_state = TrainState(300, BatchPosition(2, 0), 1.5, 200, 1, "all 2 epochs are done")
    done = result_text(TrainResult(Path("runs/x"), train_state, "", None), "go on").plain
    assert done == (
        "done after 300 steps: all 2 epochs are done; best loss per token 1.5000 at step 200, in "
        "runs/x/best"
    )
    stopped = result_text(TrainResult(Path("runs/x"), train_state, "Ctrl-C", 2), "go on").plain
    assert stopped == "stopped at step 300: Ctrl-C; resume with\n  go on"
