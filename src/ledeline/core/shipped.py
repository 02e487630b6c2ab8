"""Where the model that ships with ledeline lies, and the name that stands for it."""

from pathlib import Path
from typing import Final

from ledeline.core.errors import ModelError

SHIPPED: Final = Path(__file__).parents[1] / "models" / "default"
SHIPPED_NAME: Final = "shipped"  # stands for it wherever a model folder is named


def model_folder(name: Path | str) -> Path:
    """The folder of a model; the name "shipped" stands for the folder of the shipped one."""
    folder = Path(name)
    if folder != Path(SHIPPED_NAME) or folder.exists():
        return folder
    if not SHIPPED.exists():
        raise ModelError(
            f"{SHIPPED}: the model that ships with ledeline is missing; install ledeline again, or "
            "name a model folder, such as runs/NAME/best that ledeline train writes"
        )
    return SHIPPED
