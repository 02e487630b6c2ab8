"""The keys of `ledeline train`: those that all systems have, and those of the system."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any, Final

from ledeline.config.section import Sections, by_name, section, spread
from ledeline.config.toml import load
from ledeline.config.training import DataConfig, LoopConfig, RunConfig, ValidationConfig
from ledeline.model.initialization import INITIALIZATIONS, Initialization, UniformInit
from ledeline.model.system_config import ADDON_CONFIGS, SYSTEM_CONFIGS, SystemConfig
from ledeline.model.systems import SYSTEMS
from ledeline.model.systems.encdec import EncDecConfig
from ledeline.train.optimizers import OPTIMIZERS, AdamConfig, OptimizerConfig
from ledeline.train.schedules import SCHEDULES, HalvingSchedule, Schedule

# Keys of version 0.1.0.
RENAMED: Final = {
    "model.init": "init.bound",
    "model.": "system.",
    "gate.": "sgate.",
    "train.learning_rate": "optimizer.learning_rate",
    "train.halve_from": "schedule.halve_from",
    "train.clip": "train.clip_norm",
}

# The defaults of sections that a system's recipe may change.
_INIT: Final = UniformInit()
_OPTIMIZER: Final = AdamConfig()
_SCHEDULE: Final = HalvingSchedule()


@section
class TrainConfig:
    """Everything `ledeline train` needs.

    Optimizer, schedule and first weights are by the recipe of the system, where nothing is named.
    """

    data: Annotated[DataConfig, ""]
    system: Annotated[Any, "The model, and its sizes.", by_name(SYSTEM_CONFIGS)] = EncDecConfig()
    addons: Annotated[Sections, "", spread(ADDON_CONFIGS)] = Sections()
    init: Annotated[
        Initialization,
        "First values of the weights. Default: the system's recipe.",
        by_name(INITIALIZATIONS),
    ] = _INIT
    optimizer: Annotated[
        OptimizerConfig,
        "The optimizer. Default: the system's recipe.",
        by_name(OPTIMIZERS),
    ] = _OPTIMIZER
    schedule: Annotated[
        Schedule, "Learning rate over time. Default: the system's recipe.", by_name(SCHEDULES)
    ] = _SCHEDULE
    train: Annotated[LoopConfig, ""] = LoopConfig()
    validation: Annotated[ValidationConfig, ""] = ValidationConfig()
    run: Annotated[RunConfig, ""] = RunConfig()

    def __post_init__(self) -> None:
        recipe = SYSTEMS[self.system.name].recipe
        if self.init is _INIT:
            object.__setattr__(self, "init", _made(INITIALIZATIONS, recipe.init))
        if self.optimizer is _OPTIMIZER:
            object.__setattr__(self, "optimizer", _made(OPTIMIZERS, recipe.optimizer))
        if self.schedule is _SCHEDULE:
            object.__setattr__(self, "schedule", _made(SCHEDULES, recipe.schedule))

    @classmethod
    def section_defaults(cls, table: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
        """What the recipe of the system that a table names has for other sections."""
        given = table.get("system", {})
        name = given.get("name", EncDecConfig.name) if isinstance(given, dict) else ""
        return asdict(SYSTEMS[name].recipe) if name in SYSTEMS else {}

    @property
    def model(self) -> SystemConfig:
        """What a model folder keeps of it."""
        return SystemConfig(system=self.system, addons=self.addons)


def _made(choices: Mapping[str, type], table: Mapping[str, Any]) -> Any:
    """The section that a table of a recipe describes."""
    return choices[table["name"]](**table)


def load_train_config(
    path: Path, overrides: Sequence[str] = (), *, quiet: bool = False
) -> TrainConfig:
    """Read a configuration; keys of version 0.1.0 work still, with a warning unless `quiet`."""
    return load(TrainConfig, path, overrides, renamed=RENAMED, quiet=quiet)
