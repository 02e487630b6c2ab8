"""A check: how far a lede supports a headline."""

from dataclasses import dataclass
from typing import Any

from ledeline.inference.checks.doubt import Doubt


@dataclass(frozen=True)
class Check:
    """How far a lede supports a headline."""

    support: float | None  # from 0 to 1; None if the lede or the headline has no words
    doubts: tuple[Doubt, ...] = ()
    value: float = 0.0  # by which headlines of one lede are ranked: true, fit to print, likely

    def as_dict(self) -> dict[str, Any]:
        """What `ledeline check --json` prints."""
        return {"support": self.support, "doubts": [one.as_dict() for one in self.doubts]}
