"""The verifier in the engine in C; it judges as `ledeline.model.verifier.Verifier` does."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from ledeline.core.errors import ModelError
from ledeline.runtime.cpu import chosen_kind
from ledeline.runtime.engine import Engine, EnginePrecision
from ledeline.runtime.extension import extension
from ledeline.runtime.tensor_file import Tensors


class GeneratorView(NamedTuple):
    """N headlines of one lede, and what the generator made of them, in float32.

    Step j writes sub-word j; there is one more step, for <eos>. Legend: I words of the lede, J of
    the longest headline, G the size of the generator's states.
    """

    source: Sequence[int]
    values: bytes | memoryview  # (I, G): what attention mixes
    headlines: Sequence[Sequence[int]]
    states: bytes | memoryview  # (N, J + 1, G): z_j
    logs: Sequence[Sequence[float]]  # (N, J + 1): log p of what was written; 0 behind the last

    def rows(self, start: int, stop: int) -> "GeneratorView":
        """Some of the headlines; J becomes that of the longest of them."""
        headlines, logs = self.headlines[start:stop], self.logs[start:stop]
        steps = max(map(len, headlines), default=0) + 1
        size = len(self.values) // len(self.source)  # bytes of a state
        row = len(self.logs[0]) * size
        places = range(start * row, (start + len(headlines)) * row, row)
        states = b"".join(bytes(self.states[place : place + steps * size]) for place in places)
        return self._replace(headlines=headlines, states=states, logs=[one[:steps] for one in logs])


class VerifierSays(NamedTuple):
    """What the verifier says of N headlines, before softmax and sigmoid."""

    labels: list[list[float]]  # (N, 4)
    doubts: list[list[float]]  # of each sub-word: whether it is part of an error
    kinds: list[list[float]]  # (N, 10): the kind of error if there is one


class VerifierEngine:
    """A trained verifier, ready to judge. Several threads may use it at once."""

    def __init__(
        self,
        shape: Mapping[str, int],
        tensors: Tensors,
        precision: EnginePrecision = "int8",
        *,
        path: Path | None = None,
        kind: str | None = None,
    ) -> None:
        int8, own = precision == "int8", kind or chosen_kind()
        self._generator = shape["vocabulary"], shape["generator_size"]
        try:
            self._native: Any = extension().Verifier(tensors, dict(shape), int8, own)
        except (ValueError, OverflowError) as error:
            raise ModelError(f"{path or 'the verifier'} is damaged: {error}") from None

    def knows(self, generator: Engine) -> bool:
        """Whether it can judge what this generator sees, by its sizes."""
        return self._generator == (generator.vocabulary, generator.size)

    def judge(self, view: GeneratorView) -> VerifierSays:
        """Judge the headlines of a lede."""
        from array import array

        logs = array("f", [one for row in view.logs for one in row])
        return VerifierSays(
            *self._native.judge(view.source, view.values, view.headlines, view.states, logs)
        )
