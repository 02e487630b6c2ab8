"""Opens models, and chooses what runs them: the engine in C, a GPU, or the system itself."""

import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from ledeline.config.search import Device, Precision
from ledeline.core.errors import EngineWarning, ModelError
from ledeline.core.shipped import model_folder
from ledeline.inference.devices import chosen_device
from ledeline.inference.engine_bundle import EngineBundle, read_engine_bundle
from ledeline.inference.engine_model import EngineModel
from ledeline.inference.headline_model import ChosenPrecision, HeadlineModel
from ledeline.model.format.description import pytorch_needed, read_description

if TYPE_CHECKING:
    from ledeline.model.format.model_folder import ModelBundle
    from ledeline.model.system import System
    from ledeline.runtime.engine import Engine, EnginePrecision
    from ledeline.search.step_model import StepModel

Bundle: TypeAlias = "EngineBundle | ModelBundle"

_FEATURES = "it does not know extractive features"


def open_bundles(folders: Sequence[Path | str], device: Device) -> list[Bundle]:
    """Read model folders, those that the engine can run without torch."""
    if chosen_device(device) == "cuda":
        return [open_model(folder, "cuda") for folder in folders]
    return [read_engine_bundle(folder) or _open_unknown(folder) for folder in folders]


def _open_unknown(folder: Path | str) -> "ModelBundle":
    """Load a model that the engine does not know, on the CPU."""
    with pytorch_needed(folder, read_description(model_folder(folder))):
        return open_model(folder, "cpu")


def open_model(folder: Path | str, device: Device = "auto") -> "ModelBundle":
    """Load the system in a model folder to a device."""
    where = chosen_device(device)
    from ledeline.model.format.model_folder import load_model

    loaded = load_model(folder)
    return loaded._replace(model=loaded.model.to(where))


def as_system(bundle: Bundle) -> "ModelBundle":
    """A bundle with the system in PyTorch, for all that the engine cannot do."""
    if not isinstance(bundle, EngineBundle):
        return bundle
    from ledeline.model.format.model_folder import load_model

    return load_model(bundle.model.folder)._replace(
        tokenizer=bundle.tokenizer,
        block_ngrams=bundle.block_ngrams,
        check=bundle.check,
        beam=bundle.beam,
    )


def choose_model(bundles: Sequence[Bundle], precision: Precision) -> HeadlineModel:
    """What runs these models.

    The engine in C, on a CPU, or fused kernels, on a GPU, if they know the systems. Otherwise the
    systems run themselves in float32, with an `EngineWarning`; a precision that only an engine has
    is refused.
    """
    systems = [one.model for one in bundles if not isinstance(one, EngineBundle)]
    on_cpu = all(one.device.type == "cpu" for one in systems)
    reasons = [_refusal(one, on_cpu=on_cpu) for one in systems]
    if on_cpu and bundles[0].extractive is not None:
        reasons.append(_FEATURES)
    if reason := next(filter(None, reasons), None):
        engine = f"the {'CPU' if on_cpu else 'GPU'} engine: {reason}"
        _refuse_without_engine(precision, engine, on_cpu=on_cpu)
        return _fall_back(bundles, engine)
    chosen = _chosen_precision(precision, on_cpu=on_cpu)
    if not on_cpu:
        steps = [step_model_of(one, precision) for one in systems]
        return _with_torch([as_system(one) for one in bundles], steps, chosen)
    engines = [_engine(one, chosen) for one in bundles]
    return EngineModel(engines, _rescorer(systems, len(bundles)))


def _refusal(system: "System", *, on_cpu: bool) -> str | None:
    """Why an engine cannot run a system, as part of a sentence; None: it can."""
    if on_cpu:
        from ledeline.inference.engine_weights import refusal

        return refusal(system)
    from ledeline.model.gpu.gpu_step_model import GpuStepModel

    return GpuStepModel.refusal(system)


def _engine(bundle: Bundle, precision: ChosenPrecision) -> "Engine":
    chosen: EnginePrecision = "int8" if precision == "int8" else "float32"
    if isinstance(bundle, EngineBundle):
        return bundle.model.engine(chosen)
    from ledeline.inference.engine_weights import engine_of

    return engine_of(bundle.model, chosen)


def step_model_of(system: "System", precision: Precision) -> "StepModel[Any, Any]":
    """What a search in PyTorch steps through: fused kernels on a GPU, else the system itself."""
    if system.device.type == "cpu":
        _refuse_without_engine(precision, "the CPU engine, and PyTorch searches here", on_cpu=True)
        return system
    if reason := _refusal(system, on_cpu=False):
        _refuse_without_engine(precision, f"the GPU engine: {reason}", on_cpu=False)
        return system
    chosen = _chosen_precision(precision, on_cpu=False)
    from ledeline.model.gpu.gpu_step_model import GpuStepModel

    return GpuStepModel(system, "float16" if chosen == "float16" else "float32")  # type: ignore[arg-type]


def _fall_back(bundles: Sequence[Bundle], reason: str) -> HeadlineModel:
    warnings.warn(
        f"headlines are written by the system itself, which is slower than {reason}",
        EngineWarning,
        stacklevel=4,
    )
    loaded = [as_system(one) for one in bundles]
    return _with_torch(loaded, [one.model for one in loaded], "float32")


def _with_torch(
    bundles: "Sequence[ModelBundle]", steps: Sequence[Any], precision: ChosenPrecision
) -> HeadlineModel:
    from ledeline.inference.torch_model import TorchModel
    from ledeline.search.extractive_features import ExtractiveModel
    from ledeline.search.step_model import Ensemble

    step_model = steps[0] if len(steps) == 1 else Ensemble(steps)
    if bundles[0].extractive is not None:
        step_model = ExtractiveModel(step_model, bundles[0].extractive)
    systems = [one.model for one in bundles]
    return TorchModel(step_model, systems[0], precision, _rescorer(systems, len(systems)))


def _rescorer(systems: "Sequence[System]", num_models: int) -> Any:
    """What ranks once more what a search finds; None if no system does."""
    if not any(one.rescores for one in systems):
        return None
    from ledeline.inference.rescoring import Rescorer

    return Rescorer(systems, num_models)


def _chosen_precision(requested: Precision, *, on_cpu: bool) -> ChosenPrecision:
    """What an engine computes in."""
    _refuse_of_other_device(requested, f"{'int8' if on_cpu else 'float16'}, ", on_cpu=on_cpu)
    if requested == "float32":
        return "float32"
    return "int8" if on_cpu else "float16"


def _refuse_without_engine(requested: Precision, engine: str, *, on_cpu: bool) -> None:
    """Refuse a precision that only an engine has, where none runs."""
    _refuse_of_other_device(requested, "", on_cpu=on_cpu)
    if requested not in ("auto", "float32"):
        raise ModelError(f"precision {requested} needs {engine}; use float32 or auto")


def _refuse_of_other_device(requested: Precision, others: str, *, on_cpu: bool) -> None:
    if requested == ("float16" if on_cpu else "int8"):
        device = "GPU" if on_cpu else "CPU"
        raise ModelError(
            f"precision {requested} is for a {device}; here use {others}float32 or auto"
        )
