"""The systems, one file each: `[system] name = "..."` in a configuration picks one."""

from collections.abc import Mapping
from typing import Final

from ledeline.model.system import System
from ledeline.model.systems.abs import AbsNnlm
from ledeline.model.systems.conv_s2s import ConvS2S
from ledeline.model.systems.drgd import Drgd
from ledeline.model.systems.encdec import EncDec
from ledeline.model.systems.gru import GruEncDec
from ledeline.model.systems.ras import Ras
from ledeline.model.systems.seass import Seass
from ledeline.model.systems.transformer import Transformer

SYSTEMS: Final[Mapping[str, type[System]]] = {
    "encdec": EncDec,
    "gru": GruEncDec,
    "abs": AbsNnlm,
    "seass": Seass,
    "drgd": Drgd,
    "conv-s2s": ConvS2S,
    "ras": Ras,
    "transformer": Transformer,
}
