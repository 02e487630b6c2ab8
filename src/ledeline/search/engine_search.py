"""The beam search of the engine in C; it finds what `BeamSearch` finds."""

from collections.abc import Collection, Sequence
from dataclasses import asdict
from typing import Any, Final, NamedTuple

from ledeline.config.search import SearchConfig
from ledeline.config.section import BadValue
from ledeline.runtime.engine import Engine
from ledeline.runtime.extension import extension
from ledeline.search.hypothesis import Hypothesis, SearchPath

_MOST: Final = 2**20  # hypotheses, or sub-words, that a search must have
_FAR: Final = 2**30  # more sub-words than any headline has


class SeenHeadlines(NamedTuple):
    """What the engine saw while it wrote headlines of a source, all in float32."""

    values: bytes  # (I, H): what attention mixes
    states: bytes  # (N, steps, H): z of each step, 0 behind the last
    steps: int


class EngineSearch:
    """A search that is carried on step by step. Making one encodes the sources.

    With `forbidden`, some ids for each source, these are never written. With `keep_states`, what
    the engine saw in the first so many steps can be asked for afterwards.
    """

    def __init__(
        self,
        engines: Sequence[Engine],
        sources: Sequence[Sequence[int]],
        config: SearchConfig,
        forbidden: Sequence[Sequence[int]] | None = None,
        *,
        keep_states: int = 0,
    ) -> None:
        models = [engine.native for engine in engines]
        try:
            self._native: Any = extension().Search(
                models[0] if len(models) == 1 else models,
                list(sources),
                **_native_options(config),
                keep_states=keep_states > 0,
                max_states=keep_states,
                forbidden=forbidden,
            )
        except MemoryError:
            texts = f"{len(sources)} text" + "s" * (len(sources) != 1)
            raise MemoryError(
                f"beam {config.beam_size} for {texts} does not fit into memory"
            ) from None

    @property
    def running(self) -> bool:
        """Whether there is a step left."""
        return bool(self._native.running)

    def step(self) -> None:
        """Extend every hypothesis by a word, and take out finished ones."""
        self._native.step()

    def give_up(self, sources: Collection[int]) -> None:
        """Search no further for these sources, given by number."""
        self._native.give_up(list(sources))

    @property
    def hypotheses(self) -> list[list[Hypothesis]]:
        """The n-best list of each source; of one that was given up, whatever had ended."""
        return [
            [
                Hypothesis(ids, cost, truncated, SearchPath(slots, logs))
                for ids, cost, truncated, slots, logs in found
            ]
            for found in self._native.hypotheses()
        ]

    def seen(self, source: int, found: Sequence[Hypothesis]) -> SeenHeadlines:
        """What the engine saw while it wrote some hypotheses of a source."""
        paths = [one.path.slots for one in found if one.path is not None]
        steps = min(max(map(len, paths), default=0), int(self._native.num_seen))
        states = self._native.states(source, paths, steps)
        return SeenHeadlines(self._native.values(source), states, steps)


def _native_options(config: SearchConfig) -> dict[str, Any]:
    """The options as the engine has them; those that are off are 0, no limit is -1."""
    options = asdict(config) | {"beam": config.beam_size}
    for name in ("beam", "min_length"):
        if options[name] > _MOST:
            raise BadValue(name, options[name], f"must be at most {_MOST}")
    options["max_length"] = -1 if config.max_length is None else min(config.max_length, _FAR)
    for name in ("block_ngrams", "recombine"):
        options[name] = min(options[name] or 0, _FAR)
    return options
