"""Checks of many headlines, counted: mean support, headlines with a doubt, doubts by kind."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Self

from ledeline.core.progress import Progress, no_progress
from ledeline.evaluation.json_fields import JsonFields
from ledeline.inference.checks.check import Check
from ledeline.inference.checks.doubt import DOUBT_KINDS, DoubtKind

_CHUNK: Final = 256  # pairs between two reports of progress


@dataclass(frozen=True)
class CheckCounts:
    """The checks of many headlines. A doubt is not a proof: see docs/evaluation.md."""

    num_checked: int
    mean_support: float | None  # None if no headline was checked
    num_doubted: int  # headlines with a doubt
    doubts: dict[DoubtKind, int]  # by kind, all kinds
    num_left_out: int = 0  # for lack of support; not among those checked

    @classmethod
    def of(cls, checks: Iterable[Check], num_left_out: int = 0) -> Self:
        """Count checks; those without support, of texts without words, are ignored."""
        known = [(one.support, one.doubts) for one in checks if one.support is not None]
        kinds = Counter(doubt.kind for _, doubts in known for doubt in doubts)
        return cls(
            num_checked=len(known),
            mean_support=sum(support for support, _ in known) / len(known) if known else None,
            num_doubted=sum(bool(doubts) for _, doubts in known),
            doubts={kind: kinds[kind] for kind in DOUBT_KINDS},
            num_left_out=num_left_out,
        )

    @property
    def doubted_share(self) -> float:
        """The share of the headlines checked that have a doubt."""
        return self.num_doubted / max(1, self.num_checked)

    def per_thousand(self, kind: DoubtKind) -> float:
        """Doubts of a kind in 1,000 headlines."""
        return 1000 * self.doubts[kind] / max(1, self.num_checked)

    def as_dict(self) -> dict[str, Any]:
        """For JSON: what `ledeline audit --check --json` prints, and evaluation.json has."""
        return {
            "checked": self.num_checked,
            "left_out": self.num_left_out,
            "mean_support": self.mean_support,
            "doubted": self.num_doubted,
            "doubted_share": self.doubted_share,
            "doubts": dict(self.doubts),
            "doubts_per_1000": {kind: self.per_thousand(kind) for kind in self.doubts},
        }

    @classmethod
    def read(cls, fields: JsonFields) -> Self:
        """Read what `as_dict` has written; shares and rates are computed again."""
        doubts = fields.inner("doubts")
        num_checked, num_doubted = fields.count("checked"), fields.count("doubted")
        if num_doubted > num_checked:
            raise fields.error("doubted", f"a count up to {num_checked}")
        return cls(
            num_checked=num_checked,
            mean_support=fields.share("mean_support") if num_checked else None,
            num_doubted=num_doubted,
            doubts={
                kind: 0 if doubts.is_null(kind) else doubts.count(kind) for kind in DOUBT_KINDS
            },
            num_left_out=fields.count("left_out"),
        )


def present_kinds(counts: Iterable[CheckCounts]) -> list[DoubtKind]:
    """The kinds of which there is a doubt in any of the counts."""
    counts = list(counts)
    return [kind for kind in DOUBT_KINDS if any(one.doubts[kind] for one in counts)]


def check_headlines(
    systems: Mapping[str, Sequence[str]], ledes: Sequence[str], progress: Progress = no_progress
) -> dict[str, list[Check]]:
    """Check the headlines of each system against the ledes, with the verifier of ledeline."""
    from ledeline.inference.checks.checker import Checker

    checker = Checker.load()
    found: dict[str, list[Check]] = {}
    for name, headlines in systems.items():
        pairs = list(zip(ledes, headlines, strict=True))
        found[name] = []
        for start in range(0, len(pairs), _CHUNK):
            found[name] += checker.check_batch(pairs[start : start + _CHUNK])
            progress(f"{name}: checks", len(found[name]), len(pairs))
    return found
