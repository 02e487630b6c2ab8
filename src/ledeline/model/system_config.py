"""What a model is: a system and its add-ons, as `[system]` and the add-ons' own sections say it."""

from typing import Annotated, Any, Final, Self, TypeVar

from ledeline.config.engine_systems import system_title
from ledeline.config.section import Sections, by_name, section, spread
from ledeline.model.addons import ADDONS
from ledeline.model.systems import SYSTEMS
from ledeline.model.systems.encdec import EncDecConfig

T = TypeVar("T")

SYSTEM_CONFIGS: Final = {name: system.Config for name, system in SYSTEMS.items()}
ADDON_CONFIGS: Final = {name: addon.Config for name, addon in ADDONS.items()}


@section
class SystemConfig:
    """Enough to build a model again."""

    system: Annotated[Any, "The model, and its sizes.", by_name(SYSTEM_CONFIGS)] = EncDecConfig()
    addons: Annotated[Sections, "", spread(ADDON_CONFIGS)] = Sections()

    @classmethod
    def of(cls, system: Any, *addons: Any) -> Self:
        """A system with these add-ons, each given by its configuration."""
        names = {kind: name for name, kind in ADDON_CONFIGS.items()}
        chosen = {names[type(addon)]: addon for addon in addons}
        return cls(
            system=system,
            addons=Sections({name: chosen[name] for name in ADDONS if name in chosen}),
        )

    @property
    def name(self) -> str:
        """The name in tables, such as EncDec+sGate+SPM."""
        return system_title(self.system, self.addons)

    def of_type(self, kind: type[T]) -> T:
        """The system's own section, which is of this type."""
        if not isinstance(self.system, kind):
            raise TypeError(f"{self.system} is no {kind.__name__}")
        return self.system
