"""Where a model lies: the one that ships with ledeline, one that pip installed, or a folder."""

from pathlib import Path
from typing import Final

from ledeline.core.errors import ModelError

SHIPPED: Final = Path(__file__).parents[1] / "models" / "default"
SHIPPED_NAME: Final = "shipped"  # stands for it wherever a model folder is named


def model_folder(name: Path | str) -> Path:
    """The folder of a model, which may be given by its name.

    A folder that exists goes first. Then "shipped" stands for the shipped model, and every other
    name for the installed model that has it. What is none of these is returned as it is.
    """
    folder = Path(name)
    if not is_name(folder) or folder.exists():
        return folder
    if folder == Path(SHIPPED_NAME):
        return _shipped()
    from ledeline.core.installed_models import find_installed  # takes its time

    found = find_installed(folder.name)
    return folder if found is None else found.folder


def is_name(folder: Path) -> bool:
    """Whether this may be the name of a model: it is not in another folder."""
    return len(folder.parts) == 1 and not folder.is_absolute()


def _shipped() -> Path:
    if not SHIPPED.exists():
        raise ModelError(
            f"{SHIPPED}: the model that ships with ledeline is missing; install ledeline again, or "
            "name a model folder, such as runs/NAME/best that ledeline train writes"
        )
    return SHIPPED
