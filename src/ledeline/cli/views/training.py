"""What `ledeline train` shows: a bar with the losses, and headlines after each epoch."""

import time
from types import TracebackType
from typing import Final, Self

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn
from rich.text import Text

from ledeline.text.profiles import Profile
from ledeline.train.callbacks import RunStart, StepReport
from ledeline.train.loop import TrainResult
from ledeline.train.validation import STAGE, Sample, Validation

SECONDS_BETWEEN_LINES: Final = 30  # where there is no terminal to draw a bar on


class TrainingView:
    """Shows a run while it trains: a `ledeline.train.callbacks.Callback`."""

    def __init__(self, console: Console, profile: Profile) -> None:
        self._console, self._profile = console, profile
        self._bar = Progress(
            SpinnerColumn(),
            TextColumn("{task.description}"),
            BarColumn(bar_width=20),
            MofNCompleteColumn(),
            TextColumn("{task.fields[metrics]}"),
            console=console,
            transient=True,
        )
        self._task = self._bar.add_task("start", total=None, metrics="")
        self._next_line = time.monotonic()

    def __enter__(self) -> Self:
        if self._console.is_terminal:
            self._bar.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._console.is_terminal:
            self._bar.stop()

    # --- Callback ----------------------------------------------------------------------------

    def on_start(self, start: RunStart) -> None:
        """Say what is about to run."""
        processes = start.num_processes
        where = start.device + (f", {processes} processes" if processes > 1 else "")
        self._console.print(
            Text(start.system, style="bold").append(
                f": {start.num_parameters:,} parameters, {start.vocabulary:,} sub-words, "
                f"{start.num_pairs:,} pairs, at most {start.num_epochs} epochs, {where}",
                style="not bold",
            ),
            soft_wrap=True,
        )
        if start.step:
            self.on_message(f"resuming after step {start.step:,}")

    def on_step(self, report: StepReport) -> None:
        """Move the bar; without a terminal, write a line now and then."""
        epoch, metrics = f"epoch {report.epoch}/{report.num_epochs}", _metrics(report)
        self._bar.update(
            self._task,
            description=epoch,
            completed=report.batch,
            total=report.num_batches,
            metrics=metrics,
        )
        if not self._console.is_terminal and time.monotonic() >= self._next_line:
            line = f"{epoch}  {report.batch:,}/{report.num_batches:,}  {metrics}"
            self._console.print(line, soft_wrap=True)
            self._next_line = time.monotonic() + SECONDS_BETWEEN_LINES

    def on_validation(self, validation: Validation) -> None:
        """Show how the epoch did, and some headlines."""
        self._console.print(_validation_line(validation), soft_wrap=True)
        for sample in validation.samples:
            self._console.print(sample_text(sample, self._profile))

    def progress(self, stage: str, done: int, total: int | None) -> None:
        """Move the bar through something else than steps."""
        metrics = "then headlines" if stage == STAGE else ""
        self._bar.update(
            self._task, description=stage, completed=done, total=total, metrics=metrics
        )

    def on_message(self, sentence: str) -> None:
        """Show a sentence."""
        self._console.print(Text(sentence, style="yellow"), soft_wrap=True)


def _metrics(report: StepReport) -> str:
    losses = "  ".join(
        f"{name.replace('_', ' ')} {value:.3f}" for name, value in report.losses.metrics.items()
    )
    return (
        f"{losses}  norm {report.norm:.2f}  {report.pairs_per_second:,.0f} pairs/s  "
        f"left {duration(report.seconds_left)}"
    )


def duration(seconds: float) -> str:
    """Hours, minutes and seconds, as 1:02:03."""
    minutes, second = divmod(max(0, round(seconds)), 60)
    hour, minute = divmod(minutes, 60)
    return f"{hour}:{minute:02}:{second:02}"


def _validation_line(validation: Validation) -> Text:
    line = Text(f"epoch {validation.epoch}", style="bold")
    line.append(f"  step {validation.step:,}  valid")
    for name, value in validation.losses.metrics.items():
        line.append(f"  {name.replace('_', ' ')} {value:.3f}")
    if validation.rouge is not None:
        one, two, longest = (
            validation.rouge.rouge1,
            validation.rouge.rouge2,
            validation.rouge.rouge_l,
        )
        line.append(f"  R-1 {one.f1:.2%}  R-2 {two.f1:.2%}  R-L {longest.f1:.2%}".replace("%", ""))
        line.append(f"  ({validation.num_headlines:,} headlines, greedy)")
    return line.append("  best so far", style="green") if validation.best else line


def sample_text(sample: Sample, profile: Profile) -> Text:
    """A lede with the used words bold and the dropped ones dim, and what was made of it."""
    used = {i for i, _ in sample.links}
    text = Text("  lede       ", style="dim")
    source = profile.plain(sample.source)
    for number, word in enumerate(source):
        text.append(word, style="bold not dim" if number in used else "dim").append(" ")
    text.append("\n  reference  ").append(profile.join(sample.reference), style="not dim")
    text.append("\n  headline   ").append(profile.join(sample.headline), style="bold not dim")
    text.append("\n  aligned    ")
    for number, word in enumerate(profile.plain(sample.headline)):
        origin = " ".join(source[i] for i, j in sorted(sample.links) if j == number)
        text.append(f"{word}", style="not dim").append(f"←{origin or '∅'}  ")
    return text.append("\n")


def result_text(result: TrainResult, command: str) -> Text:
    """How the run ended, where the best model is, and how to resume."""
    train_state = result.train_state
    if result.stopped:
        line = Text(f"stopped at step {train_state.step:,}: {result.stopped}; resume with\n")
        return line.append(f"  {command}", style="bold")
    line = Text(
        f"done after {train_state.step:,} steps: {train_state.finished}; best loss per token "
    )
    line.append(f"{train_state.best_loss:.4f}").append(f" at step {train_state.best_step:,}, in ")
    return line.append(f"{result.folder / 'best'}", style="bold")
