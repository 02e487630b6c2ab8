"""Standard output: plain or JSON lines for programs, formatted headlines for people."""

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, BinaryIO, Final, TextIO

from ledeline.corpus import InvalidRow
from ledeline.corpus.lines import json_line
from ledeline.corpus.records import Record
from ledeline.inference.checks.check import Check
from ledeline.inference.outputs import RecordResult, ResumePoint
from ledeline.inference.outputs.line_formats import JsonLines, PlainLines

if TYPE_CHECKING:
    from rich.console import Console


class StandardOutput:
    """Writes headlines to a stream as soon as they are generated."""

    needs_whole_records: Final = False

    def __init__(self, stream: BinaryIO, line: Callable[[RecordResult], bytes]) -> None:
        self._stream, self._line = stream, line

    def resume(self, records: Iterator[Record | InvalidRow]) -> ResumePoint:
        """Nothing was written before: a stream cannot be resumed."""
        return ResumePoint(0, records)

    def write(self, results: Sequence[RecordResult]) -> None:
        """Write and flush."""
        self._stream.write(b"".join(map(self._line, results)))
        self._stream.flush()

    def finish(self) -> None:
        """Nothing is left to do."""


class TerminalLines:
    """Formats a headline for people: in bold, with alternatives or an explanation below."""

    def __init__(self, console: "Console", *, explain: bool) -> None:
        self._console, self._explain = console, explain

    def __call__(self, result: RecordResult) -> bytes:
        """The formatted text; rich does not write it itself, because it fails on a closed pipe."""
        with self._console.capture() as shown:
            if self._explain:
                self._console.print(result.headline)
                self._console.print()
            else:
                self._print(result)
        return shown.get().encode(self._console.encoding, errors="replace")

    def _print(self, result: RecordResult) -> None:
        from rich.text import Text

        from ledeline.inference.display import headline_text, percent

        headline = result.headline
        self._console.print(headline_text(headline) if headline else "", soft_wrap=True)
        for one in headline.alternatives[1:]:
            support = "" if one.support is None else f"{percent(one.support):>5}  "
            line = Text(f"{one.score:7.2f}  {support}", style="dim").append(one.text)
            self._console.print(line, soft_wrap=True)


def open_standard_output(stdout: TextIO, *, as_json: bool, explain: bool) -> StandardOutput:
    """Formatted for people if standard output is a terminal, else lines for programs, in UTF-8."""
    if as_json:
        return StandardOutput(stdout.buffer, JsonLines().line)
    if not explain and not stdout.isatty():
        return StandardOutput(stdout.buffer, PlainLines().line)
    from rich.console import Console

    return StandardOutput(stdout.buffer, TerminalLines(Console(file=stdout), explain=explain))


def open_pair_output(stdout: TextIO, *, as_json: bool) -> StandardOutput:
    """For pairs that were checked: lines of JSON for programs, else formatted for people."""
    if as_json:
        return StandardOutput(stdout.buffer, _pair_line)
    from rich.console import Console

    return StandardOutput(stdout.buffer, TerminalLines(Console(file=stdout), explain=True))


def _pair_line(result: RecordResult) -> bytes:
    """A pair and its check."""
    lede, headline = result.headline.source, result.headline.text
    check = Check(result.headline.support, result.headline.doubts)
    return json_line({"lede": lede, "headline": headline} | check.as_dict()).encode()
