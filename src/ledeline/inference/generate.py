"""Texts in, headlines out: a window of records at a time, in order, however long the input is."""

import time
from collections.abc import Callable, Iterator, Sequence
from typing import Final, NamedTuple, Protocol

from ledeline.core.errors import LedelineError
from ledeline.core.progress import Progress, no_progress
from ledeline.core.signals import Interrupted, Stop
from ledeline.corpus import InvalidRow
from ledeline.corpus.inputs import Input
from ledeline.corpus.records import Record
from ledeline.inference.headline import Headline, HeadlineWarning
from ledeline.inference.headliner import LARGEST_WINDOW, Options
from ledeline.inference.outputs import Answer, Output
from ledeline.inference.outputs.notes import Notes

LONG_WINDOW: Final = 5.0  # seconds; so much work a kill may undo, and a window grows no more


class Answering(Protocol):
    """What writes headlines: a `ledeline.inference.headliner.Headliner`."""

    @property
    def first_window(self) -> int:
        """Texts to begin with."""

    def generate_batch(
        self, texts: Sequence[object], options: Options, *, first: int = 1
    ) -> list[Headline]:
        """One headline for each text, in order; `first` is the number of the first text."""


class Outcome(NamedTuple):
    """How far it came."""

    num_done: int  # rows of the input, with those of earlier runs
    signal: int | None  # that stopped it


def generate(
    headliner: Answering,
    given: Input,
    output: Output,
    options: Options,
    notes: Notes,
    progress: Progress = no_progress,
) -> Outcome:
    """Write a headline for each record.

    Memory holds a window or two, however long the input is. `notes` hears of each bad row, and of
    each warning that a headline came with, once it is written. SIGINT and SIGTERM stop the work;
    what is being written is ended first.
    """
    num_done, stop = 0, Stop()
    total = None if progress is no_progress else given.num_rows()
    try:
        with stop.interrupting():
            num_done, records = output.resume(given.records(whole=output.needs_whole_records))
            for window in windows(records, given.would_block, headliner.first_window):
                answers = _answers(headliner, window, options, num_done + 1)
                with stop.held():
                    output.write(answers)
                    num_done += len(window)
                _tell(answers, notes)
                progress("headlines", num_done, total)
            progress("headlines", num_done, num_done)
            output.finish()
    except Interrupted as interrupted:
        return Outcome(num_done, interrupted.number)
    return Outcome(num_done, None)


def windows(
    records: Iterator[Record | InvalidRow], would_block: Callable[[], bool], size: int
) -> Iterator[list[Record | InvalidRow]]:
    """Yield records in lists that grow from this size on, as long as they are worked on quickly.

    A list ends early where the next record is not there yet. Where reading fails, the records
    before that are given first.
    """
    window: list[Record | InvalidRow] = []
    failure: LedelineError | None = None
    try:
        for record in records:
            window.append(record)
            full = len(window) == size
            if full or would_block():
                began = time.monotonic()
                yield window
                window = []
                quick = time.monotonic() - began < LONG_WINDOW
                size = min(2 * size, LARGEST_WINDOW) if full and quick else size
    except LedelineError as error:
        failure = error
    if window:
        yield window
    if failure is not None:
        raise failure


def _answers(
    headliner: Answering, window: list[Record | InvalidRow], options: Options, first: int
) -> list[Answer]:
    """Answer a window; a bad row is no text, and is answered with its reason."""
    texts = [record.text if isinstance(record, Record) else None for record in window]
    headlines = headliner.generate_batch(texts, options, first=first)
    return [
        Answer(record, headline if isinstance(record, Record) else _no_headline(record))
        for record, headline in zip(window, headlines, strict=True)
    ]


def _no_headline(row: InvalidRow) -> Headline:
    return Headline(None, "", warnings=(HeadlineWarning("invalid", str(row)),))


def _tell(answers: list[Answer], notes: Notes) -> None:
    for record, headline in answers:
        if isinstance(record, InvalidRow):
            notes.report(record)
            continue
        for caution in headline.warnings:
            notes.warn(record, caution)
