"""What can be added to a system with attention, one file each: `[NAME]` in a configuration adds it.

`ADDONS` has them in the order in which they act.
"""

from collections.abc import Mapping
from typing import Final

from ledeline.model.addons.addon import Addon
from ledeline.model.addons.coverage import Coverage
from ledeline.model.addons.pointer_copy import PointerCopy
from ledeline.model.addons.reconstruction import Reconstruction
from ledeline.model.addons.sgate import SelectiveGate
from ledeline.model.addons.spm import SourcePrediction
from ledeline.model.addons.wfe import WordFrequency
from ledeline.model.addons.word_prediction import WordPrediction

ADDONS: Final[Mapping[str, type[Addon]]] = {
    "sgate": SelectiveGate,
    "spm": SourcePrediction,
    "coverage": Coverage,
    "copy": PointerCopy,
    "wfe": WordFrequency,
    "reconstruction": Reconstruction,
    "word_prediction": WordPrediction,
}
