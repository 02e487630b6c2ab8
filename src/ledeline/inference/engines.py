"""The choice of an engine for a system; without one, the system runs itself."""

import warnings
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeAlias, cast

import torch

from ledeline.config.search import Device, Precision
from ledeline.core.errors import EngineWarning, ModelError
from ledeline.inference.arguments import check_choice
from ledeline.inference.attribution import Tracer
from ledeline.model.format.model_folder import ModelBundle, load_model
from ledeline.model.gpu.gpu_step_model import GpuStepModel
from ledeline.model.system import System
from ledeline.model.systems.encdec import EncDec
from ledeline.runtime.cpu import NO_INT8, has_int8
from ledeline.runtime.engine import Engine
from ledeline.search import StepModel

ChosenPrecision: TypeAlias = Literal["float32", "float16", "int8"]


class ChosenEngine(NamedTuple):
    """What runs a system."""

    step_model: StepModel[Any, Any]
    tracer: Tracer  # what gives attributions
    precision: ChosenPrecision


def choose_engine(system: System, precision: Precision) -> ChosenEngine:
    """The engine of the system's device, if it can run the system.

    Otherwise the system runs itself in float32, with an `EngineWarning`; a precision that only an
    engine has is refused.
    """
    chosen = _chosen_precision(precision, system.device)
    engine = Engine if system.device.type == "cpu" else GpuStepModel
    if reason := engine.refusal(system):
        return _fall_back(system, precision, f"the {_device_name(system)} engine: {reason}")
    known = cast(EncDec, system)
    if engine is Engine:
        on_cpu = Engine(known, "int8" if chosen == "int8" else "float32")
        return ChosenEngine(on_cpu, on_cpu, chosen)
    on_gpu = GpuStepModel(known, "float16" if chosen == "float16" else "float32")
    return ChosenEngine(on_gpu, system, chosen)


def _fall_back(system: System, precision: Precision, reason: str) -> ChosenEngine:
    if precision not in ("auto", "float32"):
        raise ModelError(f"precision {precision} needs {reason}; use float32 or auto")
    warnings.warn(
        f"headlines are written by the system itself, which is slower than {reason}",
        EngineWarning,
        stacklevel=4,
    )
    return ChosenEngine(system, system, "float32")


def _device_name(system: System) -> str:
    return "CPU" if system.device.type == "cpu" else "GPU"


def open_model(folder: Path | str, device: Device = "auto") -> ModelBundle:
    """Load a model folder to a device, without an engine."""
    where = _chosen_device(device)
    loaded = load_model(folder)
    return loaded._replace(model=loaded.model.to(where))


def _chosen_device(requested: Device) -> Literal["cpu", "cuda"]:
    check_choice("device", requested, Device)
    available = torch.cuda.is_available()
    if requested == "cuda" and not available:
        raise ModelError("device cuda needs a GPU, and torch finds none; use cpu")
    return "cuda" if available and requested != "cpu" else "cpu"


def _chosen_precision(requested: Precision, device: torch.device) -> ChosenPrecision:
    on_cpu = device.type == "cpu"
    if requested == ("float16" if on_cpu else "int8"):
        own = "int8, float32" if has_int8() else "float32"
        available, other = ("a GPU", own) if on_cpu else ("a CPU", "float16, float32")
        raise ModelError(f"precision {requested} is for {available}; here use {other} or auto")
    if requested == "float32":
        return "float32"
    if not on_cpu:
        return "float16"
    if requested == "int8" and not has_int8():
        raise ModelError(NO_INT8)
    return "int8" if has_int8() else "float32"
