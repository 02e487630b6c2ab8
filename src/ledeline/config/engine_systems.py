"""The systems and add-ons that the engine reads, as `[system]` and sections of their own say them.

They are apart from their systems, so that a model can be read without torch. `ledeline.model` has
the configurations of all others.
"""

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Final, Literal

from ledeline.config.section import (
    DEPTH,
    SIZE,
    BadValue,
    Sections,
    above,
    at_least,
    below,
    between,
    by_name,
    section,
    spread,
)


@section
class EncDecConfig:
    """EncDec: LSTMs with attention; the defaults are the paper's sizes."""

    title: ClassVar[str] = "EncDec"
    free: ClassVar[tuple[str, ...]] = ("dropout",)  # keys that a run may change on its way

    name: Annotated[Literal["encdec"], "The system."] = "encdec"
    embedding_size: Annotated[int, "D, of the word embeddings.", SIZE] = 200
    hidden_size: Annotated[int, "H, of each LSTM layer and direction.", SIZE] = 400
    layers: Annotated[int, "LSTM layers of the encoder, and of the decoder.", DEPTH] = 2
    dropout: Annotated[
        float,
        "Share of values dropped at embeddings, between layers and before the output.",
        at_least(0),
        below(1),
    ] = 0.3


@section
class TransformerConfig:
    """A Transformer with normalisation before each part of a layer."""

    title: ClassVar[str] = "Transformer"
    free: ClassVar[tuple[str, ...]] = (  # keys that a run may change on its way
        "dropout",
        "attention_dropout",
        "activation_dropout",
        "word_dropout",
        "word_replacement",
    )

    name: Annotated[Literal["transformer"], "The system."] = "transformer"
    embedding_size: Annotated[
        int,
        "d, of the embeddings and of all states; even, and a multiple of heads.",
        between(2, 2**16),
    ] = 512
    hidden_size: Annotated[int, "Of the feed-forward networks.", SIZE] = 2048
    encoder_layers: Annotated[int, "Layers of the encoder.", DEPTH] = 6
    decoder_layers: Annotated[int, "Layers of the decoder.", DEPTH] = 6
    heads: Annotated[int, "h, heads of each attention.", SIZE] = 8
    dropout: Annotated[
        float,
        "Share of values dropped at embeddings, after each part of a layer and before the output.",
        at_least(0),
        below(1),
    ] = 0.3
    attention_dropout: Annotated[
        float, "Share of attention weights dropped.", at_least(0), below(1)
    ] = 0.0
    activation_dropout: Annotated[
        float, "Share of values dropped inside feed-forward networks.", at_least(0), below(1)
    ] = 0.0
    word_dropout: Annotated[
        float,
        "Share of words, in ledes and headlines, that training reads as 0.",
        at_least(0),
        below(1),
    ] = 0.0
    word_replacement: Annotated[
        float,
        "Share of words, in ledes and headlines, for which training reads a random one.",
        at_least(0),
        below(1),
    ] = 0.0
    attention_layer: Annotated[
        int,
        "Layer of the decoder whose attention explains headlines, from 1; 0: the last. "
        "`ledeline heads` finds the best.",
        at_least(0),
    ] = 0
    attention_head: Annotated[
        int, "Head of that layer, from 1; 0: the mean of all its heads.", at_least(0)
    ] = 0

    def __post_init__(self) -> None:
        if self.embedding_size % 2 or self.embedding_size % self.heads:
            raise BadValue(
                "embedding_size",
                self.embedding_size,
                f"must be even, and a multiple of system.heads = {self.heads}",
            )
        for name, most in (("layer", self.decoder_layers), ("head", self.heads)):
            if (chosen := getattr(self, f"attention_{name}")) > most:
                raise BadValue(f"attention_{name}", chosen, f"must be at most {most}")


@section
class SelectiveGateConfig:
    """The selective gate (sGate): the systems with +sGate."""

    title: ClassVar[str] = "sGate"
    free: ClassVar[tuple[str, ...]] = ("initial_bias",)  # keys that a run may change on its way

    initial_bias: Annotated[
        float,
        "First value of b_g. At 0, as for EncDec, the gate starts half open; at 2, which is for "
        "the Transformer, it starts at 0.88.",
    ] = 0.0


@section
class SourcePredictionConfig:
    """The source-side prediction module (SPM): the systems with +SPM."""

    title: ClassVar[str] = "SPM"
    free: ClassVar[tuple[str, ...]] = ("c",)  # keys that a run may change on its way

    c: Annotated[float, "C, which the source loss is divided by.", above(0)] = 10.0


@section
class WordPredictionConfig:
    """Word prediction (WP): states learn to say which words the headline will have."""

    title: ClassVar[str] = "WP"
    free: ClassVar[tuple[str, ...]] = ("weight",)  # keys that a run may change on its way

    encoder: Annotated[bool, "Predict all words from the encoded source (WP_E)."] = True
    decoder: Annotated[bool, "Predict the words that remain from each step (WP_D)."] = True
    weight: Annotated[float, "Factor of the loss.", above(0)] = 1.0

    def __post_init__(self) -> None:
        if not (self.encoder or self.decoder):
            raise BadValue("encoder", False, "needs word_prediction.decoder")


ENGINE_SYSTEMS: Final[Mapping[str, type]] = {
    "encdec": EncDecConfig,
    "transformer": TransformerConfig,
}
ENGINE_ADDONS: Final[Mapping[str, type]] = {
    "sgate": SelectiveGateConfig,
    "spm": SourcePredictionConfig,
}
# These act in training alone, so the engine leaves them out. None of them may act in a search, or
# in an explanation.
TRAINING_ADDONS: Final[Mapping[str, type]] = {"word_prediction": WordPredictionConfig}
READ_ADDONS: Final[Mapping[str, type]] = {**ENGINE_ADDONS, **TRAINING_ADDONS}


@section
class EngineConfig:
    """A system that the engine runs."""

    system: Annotated[Any, "The model, and its sizes.", by_name(ENGINE_SYSTEMS)] = EncDecConfig()
    addons: Annotated[Sections, "", spread(READ_ADDONS)] = Sections()

    @property
    def name(self) -> str:
        """The name in tables, such as EncDec+sGate+SPM."""
        return system_title(self.system, self.addons)


def system_title(system: Any, addons: Sections) -> str:
    """The name of a system with its add-ons, such as EncDec+sGate+SPM."""
    return "+".join([system.title, *(addon.title for addon in addons.values())])
