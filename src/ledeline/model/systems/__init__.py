"""The systems, one file each: `[system] name = "..."` in a configuration picks one."""

from collections.abc import Mapping
from typing import Final

from ledeline.model.system import System
from ledeline.model.systems.abs import AbsNnlm
from ledeline.model.systems.encdec import EncDec
from ledeline.model.systems.gru import GruEncDec

SYSTEMS: Final[Mapping[str, type[System]]] = {
    "encdec": EncDec,
    "gru": GruEncDec,
    "abs": AbsNnlm,
}
