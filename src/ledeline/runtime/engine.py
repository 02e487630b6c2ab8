"""A trained model in the engine in C, which computes the same as its system in PyTorch.

Weights are read from a model folder, or taken from a system, and packed for the products of the
CPU: in int8, which is the fastest, or in float32. See docs/runtime.md.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeAlias

from ledeline.config.engine_systems import EncDecConfig, EngineConfig, TransformerConfig
from ledeline.core.errors import ModelError
from ledeline.core.steps import Steps
from ledeline.runtime.cpu import chosen_kind
from ledeline.runtime.extension import extension
from ledeline.runtime.tensor_file import Tensors

EnginePrecision: TypeAlias = Literal["float32", "int8"]
Ids: TypeAlias = Sequence[int]


class FollowedHeadline(NamedTuple):
    """What was seen while a known headline was written, step by step; the last writes <eos>.

    Values are float32. Legend: J words of the headline, I words of the source,
    H size of z_j.
    """

    logs: memoryview  # (J + 1,): log-probabilities of what was written
    states: memoryview  # (J + 1, H): z_j
    attention: memoryview | None  # (J + 1, I); None: it was not asked for
    predictions: memoryview | None  # (J + 1, I): q_j of the word at each place; None: no SPM


class Engine:
    """A trained model, ready to write headlines. Several threads may use it at once."""

    def __init__(
        self,
        config: EngineConfig,
        vocabulary: int,
        tensors: Tensors,
        precision: EnginePrecision = "int8",
        *,
        path: Path | None = None,
        kind: str | None = None,
    ) -> None:
        """Pack the weights for a kind of CPU, this one's if none is named.

        An error names `path`, the file that the weights are from.
        """
        self.config, self.precision, self.vocabulary = config, precision, vocabulary
        self.has_spm = "spm" in config.addons
        try:
            self.native: Any = extension().Model(
                tensors,
                **_sizes(config),
                vocabulary=vocabulary,
                gate="sgate" in config.addons,
                spm=self.has_spm,
                int8=precision == "int8",
                kind=kind or chosen_kind(),
            )
        except (ValueError, OverflowError) as error:
            raise ModelError(f"{path or 'the model'} is damaged: {error}") from None
        self.size: int = self.native.size  # H: of z_j, and of what attention mixes

    def follow(
        self, sources: Sequence[Ids], headlines: Sequence[tuple[int, Ids]], *, explain: bool = False
    ) -> Steps["FollowedHeadlines"]:
        """Write known headlines, step by step; each is given by the number of its source."""
        running = extension().Follow(self.native, list(sources), list(headlines), explain)
        yield
        while running.running:
            running.step()
            yield
        return FollowedHeadlines(running, sources, headlines)


class FollowedHeadlines:
    """What was seen of some headlines."""

    def __init__(
        self, native: Any, sources: Sequence[Ids], headlines: Sequence[tuple[int, Ids]]
    ) -> None:
        self._native = native
        self._widths = [len(sources[source]) for source, _ in headlines]

    def values(self, source: int) -> bytes:
        """What attention mixes for a source: (I, H) in float32."""
        found: bytes = self._native.values(source)
        return found

    def headline(self, number: int) -> FollowedHeadline:
        """What was seen of a headline."""
        return FollowedHeadline(*(_floats(one) for one in self._native.headline(number)))


def _floats(values: bytes | None) -> Any:
    return None if values is None else memoryview(values).cast("f")


def _sizes(config: EngineConfig) -> dict[str, int | str]:
    """The system and its sizes, as the engine calls them."""
    system = config.system
    if isinstance(system, TransformerConfig):
        return {
            "system": system.name,
            "embedding": system.embedding_size,
            "hidden": system.hidden_size,
            "layers": system.decoder_layers,
            "encoder_layers": system.encoder_layers,
            "heads": system.heads,
            "attention_layer": system.attention_layer or system.decoder_layers,
            "attention_head": system.attention_head,
        }
    if isinstance(system, EncDecConfig):
        return {
            "system": system.name,
            "embedding": system.embedding_size,
            "hidden": system.hidden_size,
            "layers": system.layers,
        }
    raise ModelError(f"the engine cannot run {config.name}")
