"""A system in PyTorch as the engine in C takes it."""

from ledeline.config.engine_systems import ENGINE_ADDONS, EngineConfig
from ledeline.config.section import Sections
from ledeline.core.errors import ModelError
from ledeline.model.attention_system import LAYERS, WEIGHT_NAMES
from ledeline.model.system import System
from ledeline.model.systems.encdec import EncDec
from ledeline.model.systems.transformer import Transformer
from ledeline.runtime.engine import Engine, EnginePrecision
from ledeline.runtime.tensor_file import StoredTensor, Tensors


def refusal(system: System) -> str | None:
    """Why the engine cannot run a system, as part of a sentence; None: it can.

    Add-ons that act in training alone may be any; the engine does not need to know them. Those that
    rank once more what a search finds do so in PyTorch.
    """
    if type(system) not in (EncDec, Transformer) or not isinstance(system, EncDec | Transformer):
        return f"it does not know the system {system.config.name}"
    for name, addon in system.addons.items():
        if addon.changes_decoding() and name not in ENGINE_ADDONS:
            return f"it does not know the add-on {name}"
    known = {*LAYERS, *(WEIGHT_NAMES.get(name, name) for name in system.addons)}
    unknown = [name for name, _ in system.named_children() if name not in known]
    return f"it does not know the layer {unknown[0]}" if unknown else None


def engine_of(system: System, precision: EnginePrecision) -> Engine:
    """The engine that runs a system, with its weights as they are now."""
    if reason := refusal(system):
        raise ModelError(f"the CPU engine cannot run this model: {reason}")
    addons = {name: one for name, one in system.config.addons.items() if name in ENGINE_ADDONS}
    config = EngineConfig(system=system.config.system, addons=Sections(addons))
    return Engine(config, system.vocabulary, _tensors(system), precision)


def _tensors(system: System) -> Tensors:
    """The weights that act in a search as a file would have them, in float32."""
    known = {*LAYERS, *(WEIGHT_NAMES.get(name, name) for name in ENGINE_ADDONS)}
    return {
        name: StoredTensor("F32", tuple(one.shape), one.float().contiguous().numpy().tobytes())
        for name, one in system.state_dict().items()
        if name.split(".")[0] in known
    }
