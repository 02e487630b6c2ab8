"""What writes with a system: an engine that knows it, or the system itself."""

import warnings
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeAlias, cast

import torch

from ledeline.config.search import Device, Precision
from ledeline.core.errors import EngineWarning, ModelError
from ledeline.inference.arguments import check_choice
from ledeline.inference.attribution import Tracer
from ledeline.model.format.folder import ModelBundle, load_model
from ledeline.model.gpu.step_model import GpuStepModel
from ledeline.model.system import System
from ledeline.model.systems.encdec import EncDec
from ledeline.runtime.cpu import NO_INT8, has_int8
from ledeline.runtime.engine import Engine
from ledeline.search import StepModel

ChosenPrecision: TypeAlias = Literal["float32", "float16", "int8"]


class ChosenEngine(NamedTuple):
    """What runs a system."""

    step_model: StepModel[Any, Any]
    tracer: Tracer  # says what was seen of a headline
    precision: ChosenPrecision


def choose_engine(system: System, precision: Precision) -> ChosenEngine:
    """The fastest that knows the system.

    Where none does, the system itself writes in float32, and an `EngineWarning` says so. A
    precision that only an engine has is then refused.
    """
    chosen = _chosen_precision(precision, system.device)
    engine = Engine if system.device.type == "cpu" else GpuStepModel
    if reason := engine.refusal(system):
        return _system_itself(system, precision, f"the {_place(system)} engine: {reason}")
    known = cast(EncDec, system)
    if engine is Engine:
        on_cpu = Engine(known, "int8" if chosen == "int8" else "float32")
        return ChosenEngine(on_cpu, on_cpu, chosen)
    on_gpu = GpuStepModel(known, "float16" if chosen == "float16" else "float32")
    return ChosenEngine(on_gpu, system, chosen)


def _system_itself(system: System, precision: Precision, reason: str) -> ChosenEngine:
    if precision not in ("auto", "float32"):
        raise ModelError(f"precision {precision} needs {reason}; use float32 or auto")
    warnings.warn(
        f"headlines are written by the system itself, which is slower than {reason}",
        EngineWarning,
        stacklevel=4,
    )
    return ChosenEngine(system, system, "float32")


def _place(system: System) -> str:
    return "CPU" if system.device.type == "cpu" else "GPU"


def open_model(folder: Path | str, device: Device = "auto") -> ModelBundle:
    """Open a model folder on a device, without what it takes to write headlines."""
    where = _chosen_device(device)
    loaded = load_model(folder)
    return loaded._replace(model=loaded.model.to(where))


def _chosen_device(wanted: Device) -> Literal["cpu", "cuda"]:
    check_choice("device", wanted, Device)
    there = torch.cuda.is_available()
    if wanted == "cuda" and not there:
        raise ModelError("device cuda needs a GPU, and torch finds none; use cpu")
    return "cuda" if there and wanted != "cpu" else "cpu"


def _chosen_precision(wanted: Precision, device: torch.device) -> ChosenPrecision:
    on_cpu = device.type == "cpu"
    if wanted == ("float16" if on_cpu else "int8"):
        own = "int8, float32" if has_int8() else "float32"
        there, other = ("a GPU", own) if on_cpu else ("a CPU", "float16, float32")
        raise ModelError(f"precision {wanted} is for {there}; here use {other} or auto")
    if wanted == "float32":
        return "float32"
    if not on_cpu:
        return "float16"
    if wanted == "int8" and not has_int8():
        raise ModelError(NO_INT8)
    return "int8" if has_int8() else "float32"
