"""The keys that say what a model is."""

from typing import Annotated

from ledeline.config.section import above, at_least, below, section


@section
class ModelConfig:
    """The sizes of EncDec; the defaults are the paper's."""

    embedding_size: Annotated[int, "D, of the word embeddings.", at_least(1)] = 200
    hidden_size: Annotated[int, "H, of each LSTM layer and direction.", at_least(1)] = 400
    layers: Annotated[int, "LSTM layers of the encoder, and of the decoder.", at_least(1)] = 2
    dropout: Annotated[
        float,
        "Share of values dropped at embeddings, between layers and before the output.",
        at_least(0),
        below(1),
    ] = 0.3
    init: Annotated[float, "Weights start uniform between -init and init.", above(0)] = 0.1


@section
class GateConfig:
    """The selective gate (sGate)."""

    enabled: Annotated[bool, "Gate the source states: the systems with +sGate."] = False


@section
class SpmConfig:
    """The source-side prediction module (SPM)."""

    enabled: Annotated[bool, "Predict source tokens beside the headline: systems with +SPM."] = (
        False
    )
    c: Annotated[float, "C, which the source loss is divided by.", above(0)] = 10.0


@section
class SystemConfig:
    """What a model is: enough to build it again."""

    model: Annotated[ModelConfig, ""] = ModelConfig()
    gate: Annotated[GateConfig, ""] = GateConfig()
    spm: Annotated[SpmConfig, ""] = SpmConfig()

    @property
    def name(self) -> str:
        """The paper's name of the system."""
        return "EncDec" + "+sGate" * self.gate.enabled + "+SPM" * self.spm.enabled
