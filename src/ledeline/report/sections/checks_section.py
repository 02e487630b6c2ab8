"""How far ledes support headlines: mean support, headlines with a doubt, doubts by kind."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar, Final

from ledeline.evaluation.check_counts import CheckCounts, present_kinds
from ledeline.inference.checks.doubt import DOUBT_KINDS, DoubtKind
from ledeline.report.numbers import whole
from ledeline.report.study import Study

_UNKNOWN: Final = "–"
_NOTE: Final = (
    "Support: the mean, over headlines, of the estimated probability that the lede supports the "
    "headline. Doubted: headlines with at least one doubt. The other columns have doubts in 1,000 "
    "headlines. A doubt is not a proof: true headlines may be doubted, and false ones missed."
)
_LEFT_OUT: Final = "Left out: no headline had as much support as was asked for."


@dataclass(frozen=True)
class CheckRow:
    """The checks of a system on a test set."""

    label: str
    figures: tuple[str, ...]


@dataclass(frozen=True)
class CheckGroup:
    """The systems that were checked on a test set."""

    test_set: str
    rows: tuple[CheckRow, ...]


@dataclass(frozen=True)
class ChecksSection:
    """A row for each system, test set by test set."""

    anchor: ClassVar[str] = "support"
    title: ClassVar[str] = "Support by the lede"
    template: ClassVar[str] = "checks.html.j2"

    columns: tuple[str, ...]
    groups: tuple[CheckGroup, ...]
    note: str


def checks_section(study: Study) -> ChecksSection | None:
    """Make the section; None if nothing was checked."""
    checked = {name: dict(_checked(study, name)) for name in study.test_sets}
    every = [counts for systems in checked.values() for counts in systems.values()]
    if not every:
        return None
    kinds = present_kinds(every)
    with_left_out = any(one.num_left_out for one in every)
    left_out = ["Left out"] if with_left_out else []
    groups = (
        CheckGroup(
            name,
            tuple(
                CheckRow(label, tuple(_figures(counts, kinds, with_left_out=with_left_out)))
                for label, counts in systems.items()
            ),
        )
        for name, systems in checked.items()
    )
    return ChecksSection(
        columns=("System", "Checked", *left_out, "Support", "Doubted", *map(str.capitalize, kinds)),
        groups=tuple(group for group in groups if group.rows),
        note=_note(kinds, with_left_out=with_left_out),
    )


def _checked(study: Study, test_set: str) -> Iterator[tuple[str, CheckCounts]]:
    for system, evaluated in study.evaluated(test_set):
        if evaluated.summary.checks is not None:
            yield system.label, evaluated.summary.checks


def _figures(
    counts: CheckCounts, kinds: Sequence[DoubtKind], *, with_left_out: bool
) -> Iterator[str]:
    support = counts.mean_support
    yield whole(counts.num_checked)
    if with_left_out:
        yield whole(counts.num_left_out)
    yield _UNKNOWN if support is None else f"{support:.2f}"
    yield f"{100 * counts.doubted_share:.1f}\u00a0%"
    for kind in kinds:
        yield f"{counts.per_thousand(kind):,.1f}"


def _note(kinds: Sequence[DoubtKind], *, with_left_out: bool) -> str:
    meanings = "; ".join(f"{kind}: {DOUBT_KINDS[kind]}" for kind in kinds)
    parts = [_NOTE, f"{meanings.capitalize()}." if meanings else ""]
    return " ".join(filter(None, [*parts, _LEFT_OUT if with_left_out else ""]))
