import json
import sys
from pathlib import Path

import pytest
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from tensorboard.summary.writer import event_file_writer

from ledeline.train.metrics_log import MetricsLog


@pytest.fixture(autouse=True)
def _files_are_counted_from_0(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two files of one second are read in the order of their names, and 10 comes before 9."""
    counter = type(event_file_writer._global_uid)(0)
    monkeypatch.setattr(event_file_writer, "_global_uid", counter)


def events(folder: Path) -> EventAccumulator:
    board = EventAccumulator(str(folder / "tensorboard"))
    return board.Reload()


def test_each_line_is_json_and_on_the_board(tmp_path: Path) -> None:
    with MetricsLog(tmp_path) as log:
        log.write("train", 5, target=1.5, best=True, note="é")
        log.write("start", 5, threads=2)
        assert not log.lacks_tensorboard
    line, _ = (tmp_path / "metrics.jsonl").read_text(encoding="utf-8").splitlines()
    assert {"event": "train", "step": 5, "target": 1.5, "note": "é"}.items() <= json.loads(
        line
    ).items()
    board = events(tmp_path)
    assert board.Tags()["scalars"] == ["train/target"]
    assert [(one.step, one.value) for one in board.Scalars("train/target")] == [(5, 1.5)]


def test_a_line_is_there_at_once(tmp_path: Path) -> None:
    log = MetricsLog(tmp_path)
    log.write("train", 1, target=2.0)
    assert (tmp_path / "metrics.jsonl").read_text().endswith("}\n")
    log.__exit__()


def test_opened_at_a_step_it_forgets_what_came_after(tmp_path: Path) -> None:
    with MetricsLog(tmp_path) as log:
        for step in range(1, 6):
            log.write("train", step, target=float(step))
    with (tmp_path / "metrics.jsonl").open("a") as file:
        file.write('{"event": "tr')
    with MetricsLog(tmp_path, step=3) as log:
        log.write("train", 4, target=40.0)
    lines = [json.loads(line) for line in (tmp_path / "metrics.jsonl").read_text().splitlines()]
    assert [(line["step"], line["target"]) for line in lines] == [(1, 1), (2, 2), (3, 3), (4, 40)]
    shown = [(one.step, one.value) for one in events(tmp_path).Scalars("train/target")]
    assert shown == [(1, 1.0), (2, 2.0), (3, 3.0), (4, 40.0)]


def test_without_a_folder_nothing_is_written() -> None:
    with MetricsLog(None) as log:
        assert not log.lacks_tensorboard
        log.write("train", 1, target=1.0)


def test_without_tensorboard_the_lines_are_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", None)
    with MetricsLog(tmp_path) as log:
        log.write("train", 1, target=1.0)
        assert log.lacks_tensorboard
    assert [path.name for path in tmp_path.iterdir()] == ["metrics.jsonl"]
