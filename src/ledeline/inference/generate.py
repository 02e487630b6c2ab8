"""Generate headlines for all records of an input, a chunk at a time, in order.

`check_pairs` checks records in the same way.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from typing import Final, NamedTuple, Protocol, TypeAlias

from ledeline.core.errors import LedelineError
from ledeline.core.progress import Progress, no_progress
from ledeline.core.signals import Interrupted, Stop
from ledeline.corpus import InvalidRow
from ledeline.corpus.inputs import Input
from ledeline.corpus.records import Record
from ledeline.inference.headline import Headline, HeadlineWarning
from ledeline.inference.options import CHUNK_GROWTH, Options
from ledeline.inference.outputs import Output, RecordResult
from ledeline.inference.outputs.reporter import LimitedReporter

SLOW_CHUNK_SECONDS: Final = 5.0  # chunks that take longer do not grow; a kill undoes at most one


class BatchGenerator(Protocol):
    """What generates headlines: a `ledeline.inference.headliner.Headliner`."""

    @property
    def first_chunk_size(self) -> int:
        """Texts in the first chunk."""

    def generate_batch(
        self, texts: Sequence[object], options: Options, *, first: int = 1
    ) -> list[Headline]:
        """One headline for each text, in order; `first` is the number of the first text."""


# From a chunk of records, and the number of the first, to their results.
ChunkWork: TypeAlias = Callable[[list[Record | InvalidRow], int], list[RecordResult]]


class GenerateResult(NamedTuple):
    """How far the generation got."""

    num_done: int  # rows of the input, with those of earlier runs
    signal: int | None  # the signal that stopped it


def generate(
    headliner: BatchGenerator,
    given: Input,
    output: Output,
    options: Options,
    reporter: LimitedReporter,
    progress: Progress = no_progress,
) -> GenerateResult:
    """Write a headline for each record.

    `reporter` gets each bad row and each warning of a headline, once it is written.
    """

    def work(chunk: list[Record | InvalidRow], first: int) -> list[RecordResult]:
        return _generate_records(headliner, chunk, options, first)

    size = headliner.first_chunk_size
    return write_results(work, given, output, reporter, progress, stage="headlines", size=size)


def write_results(
    work: ChunkWork,
    given: Input,
    output: Output,
    reporter: LimitedReporter,
    progress: Progress,
    *,
    stage: str,
    size: int,
    whole: bool = False,
) -> GenerateResult:
    """Work on all records of an input, in chunks that grow from this size on, and write them.

    Memory holds a chunk or two, however long the input is. SIGINT and SIGTERM stop the work, after
    a write that is in progress. With `whole`, the work needs all columns of the records.
    """
    num_done, stop = 0, Stop()
    total = None if progress is no_progress else given.num_rows()
    try:
        with stop.interrupting():
            records = given.records(whole=whole or output.needs_whole_records)
            num_done, records = output.resume(records)
            for chunk in growing_chunks(records, given.would_block, size):
                results = work(chunk, num_done + 1)
                with stop.held():
                    output.write(results)
                    num_done += len(chunk)
                _report(results, reporter)
                progress(stage, num_done, total)
            progress(stage, num_done, num_done)
            output.finish()
    except Interrupted as interrupted:
        return GenerateResult(num_done, interrupted.number)
    return GenerateResult(num_done, None)


def growing_chunks(
    records: Iterator[Record | InvalidRow], would_block: Callable[[], bool], size: int
) -> Iterator[list[Record | InvalidRow]]:
    """Yield records in lists that double from this size to eight times, if each takes little time.

    A list ends early if the next record has not arrived yet. If reading fails, the records before
    the failure are yielded first.
    """
    chunk: list[Record | InvalidRow] = []
    failure: LedelineError | None = None
    largest = CHUNK_GROWTH * size
    try:
        for record in records:
            chunk.append(record)
            full = len(chunk) == size
            if full or would_block():
                began = time.monotonic()
                yield chunk
                chunk = []
                quick = time.monotonic() - began < SLOW_CHUNK_SECONDS
                size = min(2 * size, largest) if full and quick else size
    except LedelineError as error:
        failure = error
    if chunk:
        yield chunk
    if failure is not None:
        raise failure


def _generate_records(
    headliner: BatchGenerator, chunk: list[Record | InvalidRow], options: Options, first: int
) -> list[RecordResult]:
    """Generate the headlines of a chunk; a bad row gets an empty one with its reason."""
    texts = [record.text if isinstance(record, Record) else None for record in chunk]
    headlines = headliner.generate_batch(texts, options, first=first)
    return [
        RecordResult(record, headline if isinstance(record, Record) else _no_headline(record))
        for record, headline in zip(chunk, headlines, strict=True)
    ]


def _no_headline(row: InvalidRow) -> Headline:
    return Headline(None, "", warnings=(HeadlineWarning("invalid", str(row)),))


def _report(results: list[RecordResult], reporter: LimitedReporter) -> None:
    for record, headline in results:
        if isinstance(record, InvalidRow):
            reporter.bad_row(record)
            continue
        for warning in headline.warnings:
            reporter.warning(record, warning)
