"""What a run writes about itself: `metrics.jsonl` and TensorBoard's files."""

import json
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from ledeline.core.atomic import atomic_write

if TYPE_CHECKING:
    from torch.utils.tensorboard import SummaryWriter

METRICS = "metrics.jsonl"
TENSORBOARD = "tensorboard"
NO_TENSORBOARD = (
    f"no files for TensorBoard are written, because the package tensorboard is not installed; "
    f"{METRICS} has the same numbers (pip install 'ledeline[tensorboard]')"
)
ON_TENSORBOARD = ("train", "valid")  # events; the others only have a line


class MetricsLog:
    """The metrics of a run: a line of JSON each, and the same for TensorBoard.

    Opened at a step it removes what was written after it, so that a resumed run has each step once.
    Without a folder it writes nothing, as in the processes that do not lead. Files for TensorBoard
    are written only where the package tensorboard is installed.
    """

    def __init__(self, folder: Path | None, step: int = 0) -> None:
        self._lines = self._board = None
        if folder is None:
            return
        _truncate(folder / METRICS, step)
        self._lines = (folder / METRICS).open("a", encoding="utf-8")
        self._board = _board(folder / TENSORBOARD, step)

    @property
    def lacks_tensorboard(self) -> bool:
        """Whether files for TensorBoard are left out because the package is not installed."""
        return self._lines is not None and self._board is None

    def write(self, event: str, step: int, **metrics: Any) -> None:
        """Write a line at once; numbers of training and validation go to TensorBoard as well."""
        if self._lines is None:
            return
        line = {"event": event, "step": step, "time": round(time.time(), 3), **metrics}
        self._lines.write(json.dumps(line, ensure_ascii=False) + "\n")
        self._lines.flush()
        if self._board is not None and event in ON_TENSORBOARD:
            for name, value in metrics.items():
                if isinstance(value, int | float) and not isinstance(value, bool):
                    self._board.add_scalar(f"{event}/{name}", value, step)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for file in (self._lines, self._board):
            if file is not None:
                file.close()


def _board(folder: Path, step: int) -> "SummaryWriter | None":
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError:
        return None
    return SummaryWriter(str(folder), purge_step=step + 1)


def _truncate(path: Path, step: int) -> None:
    """Keep the lines up to a step; a half-written last line is removed, too."""
    if not path.exists():
        return
    kept = [line for line in path.read_text("utf-8", "replace").splitlines() if _upto(line, step)]
    with atomic_write(path) as part:
        part.write_text("".join(line + "\n" for line in kept), encoding="utf-8")


def _upto(line: str, step: int) -> bool:
    try:
        return int(json.loads(line)["step"]) <= step
    except (ValueError, KeyError, TypeError):
        return False
