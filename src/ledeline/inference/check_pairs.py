"""Check all pairs of an input, a chunk at a time, in order."""

from collections.abc import Iterable
from typing import Final, NamedTuple, Protocol

from ledeline.core.errors import CorpusError
from ledeline.core.progress import Progress, no_progress
from ledeline.corpus import InvalidRow
from ledeline.corpus.inputs import FileInput, Input
from ledeline.corpus.records import Record
from ledeline.corpus.tables import column_error, json_strings
from ledeline.inference.checks.check import Check
from ledeline.inference.generate import write_results
from ledeline.inference.headline import Headline, HeadlineWarning
from ledeline.inference.outputs import Output, RecordResult
from ledeline.inference.outputs.reporter import LimitedReporter

FIRST_CHUNK_SIZE: Final = 64


class BatchChecker(Protocol):
    """What checks pairs: a `ledeline.inference.checks.checker.Checker`."""

    def check_batch(self, pairs: Iterable[tuple[str, str]]) -> list[Check]:
        """How far each lede supports its headline."""


class CheckPairsResult(NamedTuple):
    """How far the checking got."""

    num_done: int  # rows of the input, with those of earlier runs
    num_checked: int  # rows of this run
    num_low: int  # of these, with less support than asked for, or without any
    signal: int | None  # the signal that stopped it


def check_pairs(
    checker: BatchChecker,
    given: Input,
    headline_column: str,
    output: Output,
    reporter: LimitedReporter,
    progress: Progress = no_progress,
    *,
    min_support: float = 0.0,
) -> CheckPairsResult:
    """Write support and doubts for each record; its text is the lede.

    `reporter` gets each bad row, and a warning for each pair that cannot be checked.
    """
    _check_column(given, headline_column)
    num_checked = num_low = 0

    def work(chunk: list[Record | InvalidRow], first: int) -> list[RecordResult]:  # noqa: ARG001
        nonlocal num_checked, num_low
        results = _check_records(checker, chunk, headline_column)
        num_checked += len(results)
        num_low += sum(is_low(one.headline.support, min_support) for one in results)
        return results

    done, signal = write_results(
        work, given, output, reporter, progress, stage="pairs", size=FIRST_CHUNK_SIZE, whole=True
    )
    return CheckPairsResult(done, num_checked, num_low, signal)


def is_low(support: float | None, least: float) -> bool:
    """Whether a pair has less support than this, or could not be checked."""
    return support is None or support < least


def checked_headline(lede: str, headline: str, check: Check) -> Headline:
    """A pair with its check; a warning if it could not be checked."""
    warnings = () if check.support is not None else (_no_words(lede, headline),)
    return Headline(lede, headline, warnings=warnings, support=check.support, doubts=check.doubts)


def _check_column(given: Input, column: str) -> None:
    """Refuse a table without the column of headlines; JSON lines of a stream come later."""
    if isinstance(given, FileInput) or given.file_format != "jsonl":
        error = column_error(given.columns, [column]) if given.columns else ""
        if error:
            raise CorpusError(f"{given.name}: {error}")


def _check_records(
    checker: BatchChecker, chunk: list[Record | InvalidRow], column: str
) -> list[RecordResult]:
    """Check the pairs of a chunk; what cannot be checked gets a warning instead."""
    pairs = [_read_pair(record, column) for record in chunk]
    readable = [(one.source or "", one.text) for one in pairs if not one.warnings]
    checks = iter(checker.check_batch(readable))
    return [
        RecordResult(
            record,
            one if one.warnings else checked_headline(one.source or "", one.text, next(checks)),
        )
        for record, one in zip(chunk, pairs, strict=True)
    ]


def _read_pair(record: Record | InvalidRow, column: str) -> Headline:
    """The lede and the headline of a record, not checked yet, or a warning."""
    if isinstance(record, InvalidRow):
        return Headline(None, "", warnings=(HeadlineWarning("invalid", str(record)),))
    try:
        (headline,) = json_strings(record.row, [column])
    except ValueError as error:
        return Headline(record.text, "", warnings=(HeadlineWarning("invalid", str(error)),))
    return Headline(record.text, headline)


def _no_words(lede: str, headline: str) -> HeadlineWarning:
    if not lede.strip():
        return HeadlineWarning("empty", "the lede has no words")
    if not headline.strip():
        return HeadlineWarning("empty", "the headline has no words")
    return HeadlineWarning("empty", "the lede or the headline has no words")
