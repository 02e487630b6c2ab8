"""Everything `ledeline train` needs: the keys that all systems have, and those of the system."""

from typing import Annotated, Any, Final

from ledeline.config.section import Sections, by_name, section, spread
from ledeline.config.training import DataConfig, LoopConfig, RunConfig, ValidationConfig
from ledeline.model.config import ADDON_CONFIGS, SYSTEM_CONFIGS, SystemConfig
from ledeline.model.initialization import INITIALIZATIONS, UniformInit
from ledeline.model.systems.encdec import EncDecConfig
from ledeline.train.optimizers import OPTIMIZERS, AdamConfig
from ledeline.train.schedules import SCHEDULES, HalvingSchedule

# Keys as version 0.1.0 called them.
RENAMED: Final = {
    "model.init": "init.bound",
    "model.": "system.",
    "gate.": "sgate.",
    "train.learning_rate": "optimizer.learning_rate",
    "train.halve_from": "schedule.halve_from",
    "train.clip": "train.clip_norm",
}


@section
class TrainConfig:
    """Everything `ledeline train` needs."""

    data: Annotated[DataConfig, ""]
    system: Annotated[Any, "", by_name(SYSTEM_CONFIGS)] = EncDecConfig()
    addons: Annotated[Sections, "", spread(ADDON_CONFIGS)] = Sections()
    init: Annotated[Any, "", by_name(INITIALIZATIONS)] = UniformInit()
    optimizer: Annotated[Any, "", by_name(OPTIMIZERS)] = AdamConfig()
    schedule: Annotated[Any, "", by_name(SCHEDULES)] = HalvingSchedule()
    train: Annotated[LoopConfig, ""] = LoopConfig()
    validation: Annotated[ValidationConfig, ""] = ValidationConfig()
    run: Annotated[RunConfig, ""] = RunConfig()

    @property
    def model(self) -> SystemConfig:
        """What the model is."""
        return SystemConfig(system=self.system, addons=self.addons)
