"""Standard output: lines for a program, or headlines for people."""

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, BinaryIO, Final, TextIO

from ledeline.corpus import InvalidRow
from ledeline.corpus.records import Record
from ledeline.inference.outputs import Answer, Resumed
from ledeline.inference.outputs.line_formats import JsonLines, PlainLines

if TYPE_CHECKING:
    from rich.console import Console


class Standard:
    """Writes each answer to a stream as soon as it is there."""

    needs_whole_records: Final = False

    def __init__(self, stream: BinaryIO, line: Callable[[Answer], bytes]) -> None:
        self._stream, self._line = stream, line

    def resume(self, records: Iterator[Record | InvalidRow]) -> Resumed:
        """A stream begins anew."""
        return Resumed(0, records)

    def write(self, answers: Sequence[Answer]) -> None:
        """Write and flush."""
        self._stream.write(b"".join(map(self._line, answers)))
        self._stream.flush()

    def finish(self) -> None:
        """All is written."""


class Shown:
    """How people see a headline: in bold, with what else was asked for below it."""

    def __init__(self, console: "Console", *, explain: bool) -> None:
        self._console, self._explain = console, explain

    def __call__(self, answer: Answer) -> bytes:
        """Return what to write; rich does not write, for it would take a closed pipe as a fault."""
        with self._console.capture() as shown:
            if self._explain:
                self._console.print(answer.headline)
                self._console.print()
            else:
                self._print(answer)
        return shown.get().encode(self._console.encoding, errors="replace")

    def _print(self, answer: Answer) -> None:
        from rich.text import Text

        best, *others = answer.headline.alternatives or (answer.headline,)
        self._console.print(Text(best.text, style="bold"), soft_wrap=True)
        for one in others:
            line = Text(f"{one.score:7.2f}  ", style="dim").append(one.text)
            self._console.print(line, soft_wrap=True)


def standard_output(stdout: TextIO, *, as_json: bool, explain: bool) -> Standard:
    """What writes to standard output: for people where that is a terminal, else for programs.

    Lines for programs are UTF-8, as those that are read.
    """
    if as_json:
        return Standard(stdout.buffer, JsonLines().line)
    if not explain and not stdout.isatty():
        return Standard(stdout.buffer, PlainLines().line)
    from rich.console import Console

    return Standard(stdout.buffer, Shown(Console(file=stdout), explain=explain))
