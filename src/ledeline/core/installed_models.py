"""Models that are pip packages of their own, found by name.

Such a package has an entry point in the group `ledeline_models`. The entry point has the name of
the model; its value is a Python package with a model folder called `model`. The Python package is
never imported.
"""

import importlib.util
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Final, NamedTuple

from ledeline.core.errors import LedelineError, ModelError, NewerModelError
from ledeline.core.shipped import SHIPPED_NAME

GROUP: Final = "ledeline_models"  # of entry points
FOLDER: Final = "model"  # in the Python package
DESCRIPTION: Final = "model.json"  # a folder without it is no model folder


class InstalledModel(NamedTuple):
    """A model that an installed package has."""

    name: str
    distribution: str  # the package, as pip calls it
    version: str
    folder: Path

    @property
    def package(self) -> str:
        """The package with its version."""
        return f"{self.distribution} {self.version}"

    def explain(self, error: LedelineError) -> ModelError:
        """The error of its model folder, with the package and what to do about it."""
        advice = f"install {self.distribution} again"
        if isinstance(error, NewerModelError):
            advice = "install a newer ledeline"
        return ModelError(
            f"the installed model {self.name} ({self.package}) cannot be used: {error}; {advice}"
        )


def installed_models() -> list[InstalledModel]:
    """All of them, by name; also those that cannot be used."""
    found = (_installed(entry) for entry in entry_points(group=GROUP))
    return sorted(one for one in found if one is not None)


def find_installed(name: str) -> InstalledModel | None:
    """The installed model of this name, if there is one."""
    found = [one for one in installed_models() if one.name == name]
    if not found:
        return None
    refuse_unusable(found[0], found)
    return found[0]


def refuse_unusable(model: InstalledModel, installed: list[InstalledModel]) -> None:
    """Refuse a model without its folder, or with a name that is not its own."""
    same = [one for one in installed if one.name == model.name]
    if model.name == SHIPPED_NAME:
        raise ModelError(
            f"{model.package} calls its model {SHIPPED_NAME}, which is the name of the model that "
            f"comes with ledeline; uninstall {model.distribution}"
        )
    if len(same) > 1:
        packages = " and ".join(one.package for one in same)
        raise ModelError(
            f"{len(same)} installed packages have a model called {model.name}: {packages}; "
            "uninstall all but one"
        )
    if not (model.folder / DESCRIPTION).is_file():
        raise model.explain(ModelError(f"{model.folder} has no {DESCRIPTION}"))


def explain_installed(folder: Path, error: LedelineError) -> LedelineError:
    """The error of a model folder; with its package, if the folder belongs to one."""
    for one in installed_models():
        if one.folder == folder:
            return one.explain(error)
    return error


def not_installed() -> str:
    """Part of a sentence about a name that no model has."""
    names = ", ".join([SHIPPED_NAME, *dict.fromkeys(one.name for one in installed_models())])
    return (
        f"no installed model has this name (installed: {names}; pip install FOLDER adds one that "
        "ledeline package made)"
    )


def _installed(entry: EntryPoint) -> InstalledModel | None:
    if entry.dist is None:
        return None
    module = entry.value.partition(":")[0].strip()
    top, *rest = module.split(".")
    places = _package_folders(top) or [Path(str(entry.dist.locate_file(top)))]
    folders = [place.joinpath(*rest, FOLDER) for place in places]
    folder = next((one for one in folders if one.is_dir()), folders[0])
    return InstalledModel(entry.name, entry.dist.name, entry.dist.version, folder)


def _package_folders(name: str) -> list[Path]:
    """Where a Python package lies that is in no other, without importing it."""
    try:
        spec = importlib.util.find_spec(name)
    except ValueError:  # no name at all
        return []
    places = None if spec is None else spec.submodule_search_locations
    return [Path(place) for place in places or ()]
