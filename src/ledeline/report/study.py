"""Several evaluations side by side: names of systems, the baseline, and what can be compared."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from ledeline.core.errors import ScoreError
from ledeline.evaluation.evaluation_folder import EvaluatedSet, Evaluation, EvaluationFolder
from ledeline.evaluation.significance import Comparison, compare


@dataclass(frozen=True, eq=False)
class ReportedSystem:
    """An evaluation with its name on the page."""

    place: int  # among the systems, from 0; decides its colour
    label: str
    evaluation: Evaluation

    def evaluated_set(self, test_set: str) -> EvaluatedSet | None:
        """The system on a test set; None where it was not evaluated on it."""
        return self.evaluation.sets.get(test_set)


@dataclass(frozen=True, eq=False)
class Study:
    """The systems that a report compares."""

    systems: tuple[ReportedSystem, ...]
    baseline: ReportedSystem

    @cached_property
    def test_sets(self) -> tuple[str, ...]:
        """The names of all test sets, in the order in which systems have them."""
        names = (name for system in self.systems for name in system.evaluation.sets)
        return tuple(dict.fromkeys(names))

    @cached_property
    def has_checks(self) -> bool:
        """Whether headlines of any system were checked."""
        sets = (one for system in self.systems for one in system.evaluation.sets.values())
        return any(one.summary.checks is not None for one in sets)

    def evaluated(self, test_set: str) -> list[tuple[ReportedSystem, EvaluatedSet]]:
        """The systems that were evaluated on a test set."""
        found = ((system, system.evaluated_set(test_set)) for system in self.systems)
        return [(system, one) for system, one in found if one is not None]

    def comparable(self, test_set: str) -> list[tuple[ReportedSystem, EvaluatedSet]]:
        """Those with the same references as the one that they are compared with, that one too."""
        return self._comparable[test_set]

    @cached_property
    def _comparable(self) -> dict[str, list[tuple[ReportedSystem, EvaluatedSet]]]:
        return {name: self._with_same_references(name) for name in self.test_sets}

    def _with_same_references(self, test_set: str) -> list[tuple[ReportedSystem, EvaluatedSet]]:
        references = self._first(test_set)[1].texts.references
        return [one for one in self.evaluated(test_set) if one[1].texts.references == references]

    def incomparable(self, test_set: str) -> list[ReportedSystem]:
        """Those with other references, though the test set has the same name."""
        comparable = [system for system, _ in self.comparable(test_set)]
        return [system for system, _ in self.evaluated(test_set) if system not in comparable]

    def otherwise_scored(self, test_set: str) -> list[ReportedSystem]:
        """Those with the same references, but with another signature of their scores."""
        signature = self._first(test_set)[1].summary.signature
        comparable = self.comparable(test_set)
        return [system for system, one in comparable if one.summary.signature != signature]

    def first(self, test_set: str) -> ReportedSystem:
        """The system that others are compared with: the baseline, or the first that has the set."""
        return self._first(test_set)[0]

    def _first(self, test_set: str) -> tuple[ReportedSystem, EvaluatedSet]:
        evaluated = self.evaluated(test_set)
        return next((one for one in evaluated if one[0] is self.baseline), evaluated[0])

    @cached_property
    def comparisons(self) -> dict[tuple[str, str], list[Comparison]]:
        """(label, test set) -> the system against the baseline, one for each measure.

        Only where references and signature are the same.
        """
        return dict(self._compare())

    def _compare(self) -> Iterator[tuple[tuple[str, str], list[Comparison]]]:
        for test_set, ours in self.baseline.evaluation.sets.items():
            for system, theirs in self.comparable(test_set):
                is_alike = theirs.summary.signature == ours.summary.signature
                if system is not self.baseline and is_alike:
                    numbers = compare(ours.pair_scores, theirs.pair_scores)
                    yield (system.label, test_set), numbers


def read_study(folders: Sequence[Path], baseline: str | None = None) -> Study:
    """Read folders; the baseline is a system by name, or the first."""
    if not folders:
        raise ScoreError("there is no folder to report on; name one that evaluate has written")
    for folder, times in Counter(folder.resolve() for folder in folders).items():
        if times > 1:
            raise ScoreError(f"{folder}: is given {times} times; name each folder once")
    evaluations = [EvaluationFolder(folder).read() for folder in folders]
    labels = _labels(evaluations)
    systems = tuple(map(ReportedSystem, range(len(labels)), labels, evaluations))
    study = Study(systems, _find_baseline(systems, baseline))
    _check_common_sets(study)
    return study


def _labels(evaluations: Sequence[Evaluation]) -> list[str]:
    """The name of each system, with its folder where two have the same name."""
    times = Counter(one.system for one in evaluations)
    alike = [one.folder.resolve() for one in evaluations if times[one.system] > 1]
    return [
        f"{one.system} ({_distinct_tail(one.folder.resolve(), alike)})"
        if times[one.system] > 1
        else one.system
        for one in evaluations
    ]


def _distinct_tail(folder: Path, others: Sequence[Path]) -> str:
    """The shortest end of a path that no other path has."""
    for length in range(1, len(folder.parts)):
        tail = folder.parts[-length:]
        if sum(other.parts[-length:] == tail for other in others) == 1:
            return "/".join(tail)
    return str(folder)


def _find_baseline(systems: Sequence[ReportedSystem], name: str | None) -> ReportedSystem:
    if name is None:
        return systems[0]
    found = [one for one in systems if name == one.label]
    found = found or [one for one in systems if name == one.evaluation.system]
    if len(found) == 1:
        return found[0]
    names = ", ".join(repr(one.label) for one in found or systems)
    if found:
        raise ScoreError(f"the baseline {name!r} matches {len(found)} systems; use one of {names}")
    raise ScoreError(f"there is no system {name!r} for the baseline; use one of {names}")


def _check_common_sets(study: Study) -> None:
    """Each system must have been evaluated on a test set that the baseline was evaluated on."""
    known = study.baseline.evaluation.sets
    for system in study.systems:
        if not known.keys() & system.evaluation.sets.keys():
            theirs, ours = (", ".join(one) for one in (system.evaluation.sets, known))
            raise ScoreError(
                f"{system.evaluation.folder}: has no test set in common with the baseline "
                f"{study.baseline.label} ({theirs}; {ours}); report on it alone"
            )
