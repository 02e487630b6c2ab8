"""A doubt: words of a headline that its lede does not support, and why."""

from typing import Any, Final, Literal, NamedTuple, TypeAlias

DoubtKind: TypeAlias = Literal[
    "number", "name", "role", "relation", "modality", "negation", "time", "place", "added"
]

DOUBT_KINDS: Final[dict[DoubtKind, str]] = {
    "number": "a number that the lede does not have, or has of something else",
    "name": "a name that the lede does not have",
    "role": "who did it, or to whom",
    "relation": "things joined that the lede does not join",
    "modality": "a claim, plan or possibility told as a fact",
    "negation": "a not that was lost or added",
    "time": "when it happened",
    "place": "where it happened",
    "added": "something that the lede does not say",
}


class Doubt(NamedTuple):
    """Words of a headline that its lede does not support."""

    start: int  # of the first character in the headline
    end: int  # behind the last one
    words: str  # what stands there
    kind: DoubtKind
    why: str  # one short phrase; quotes the lede where it can
    by_verifier: bool = False  # or by a rule

    def __str__(self) -> str:
        return f'"{self.words}": {self.why}'

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        fields = self._asdict()
        del fields["by_verifier"]
        return fields
