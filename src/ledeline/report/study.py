"""Several evaluations side by side: what to call them, the baseline, what is comparable."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from ledeline.core.errors import ScoreError
from ledeline.evaluation.significance import Comparison, compare
from ledeline.report.evaluations import Evaluation, Outcome, read_evaluation


@dataclass(frozen=True, eq=False)
class System:
    """An evaluation with the name it has on the page."""

    place: int  # among the systems, from 0; its colour
    label: str
    evaluation: Evaluation

    def outcome(self, test_set: str) -> Outcome | None:
        """How it did on a test set; None where it was not evaluated on it."""
        return self.evaluation.outcomes.get(test_set)


@dataclass(frozen=True, eq=False)
class Study:
    """What a report is about."""

    systems: tuple[System, ...]
    baseline: System

    @cached_property
    def test_sets(self) -> tuple[str, ...]:
        """The names of all test sets, in the order in which systems have them."""
        names = (name for system in self.systems for name in system.evaluation.outcomes)
        return tuple(dict.fromkeys(names))

    def evaluated(self, test_set: str) -> list[tuple[System, Outcome]]:
        """The systems that were evaluated on a test set."""
        found = ((system, system.outcome(test_set)) for system in self.systems)
        return [(system, outcome) for system, outcome in found if outcome is not None]

    def comparable(self, test_set: str) -> list[tuple[System, Outcome]]:
        """Those whose references are the same, the one they are compared with among them."""
        return self._comparable[test_set]

    @cached_property
    def _comparable(self) -> dict[str, list[tuple[System, Outcome]]]:
        return {name: self._alike(name) for name in self.test_sets}

    def _alike(self, test_set: str) -> list[tuple[System, Outcome]]:
        references = self._first(test_set)[1].texts.references
        return [one for one in self.evaluated(test_set) if one[1].texts.references == references]

    def incomparable(self, test_set: str) -> list[System]:
        """Those whose references are others, though the test set has the same name."""
        comparable = [system for system, _ in self.comparable(test_set)]
        return [system for system, _ in self.evaluated(test_set) if system not in comparable]

    def otherwise_scored(self, test_set: str) -> list[System]:
        """Those with the same references whose scores were made in another way."""
        signature = self._first(test_set)[1].signature
        return [one for one, outcome in self.comparable(test_set) if outcome.signature != signature]

    def _first(self, test_set: str) -> tuple[System, Outcome]:
        """The system others are compared with: the baseline, or the first that has the set."""
        evaluated = self.evaluated(test_set)
        return next((one for one in evaluated if one[0] is self.baseline), evaluated[0])

    def first(self, test_set: str) -> System:
        """The baseline, or the first that has the set where the baseline has not."""
        return self._first(test_set)[0]

    @cached_property
    def comparisons(self) -> dict[tuple[str, str], list[Comparison]]:
        """(label, test set) -> the system against the baseline, one for each measure.

        Only where references and signature are the same.
        """
        return dict(self._compared())

    def _compared(self) -> Iterator[tuple[tuple[str, str], list[Comparison]]]:
        for test_set, ours in self.baseline.evaluation.outcomes.items():
            for system, theirs in self.comparable(test_set):
                if system is not self.baseline and theirs.signature == ours.signature:
                    numbers = compare(ours.pair_scores, theirs.pair_scores)
                    yield (system.label, test_set), numbers


def read_study(folders: Sequence[Path], baseline: str | None = None) -> Study:
    """Read folders; the baseline is a system by name, or the first."""
    if not folders:
        raise ScoreError("there is no folder to report on; name one that evaluate has written")
    for folder, times in Counter(folder.resolve() for folder in folders).items():
        if times > 1:
            raise ScoreError(f"{folder}: is given {times} times; name each folder once")
    evaluations = [read_evaluation(folder) for folder in folders]
    labels = _labels(evaluations)
    systems = tuple(map(System, range(len(labels)), labels, evaluations))
    study = Study(systems, _find(systems, baseline))
    _refuse_strangers(study)
    return study


def _labels(evaluations: Sequence[Evaluation]) -> list[str]:
    """The name of each system, with its folder where two have the same name."""
    times = Counter(one.system for one in evaluations)
    alike = [one.folder.resolve() for one in evaluations if times[one.system] > 1]
    return [
        f"{one.system} ({_tail(one.folder.resolve(), alike)})"
        if times[one.system] > 1
        else one.system
        for one in evaluations
    ]


def _tail(folder: Path, others: Sequence[Path]) -> str:
    """As much of the end of a path as tells it from others."""
    for length in range(1, len(folder.parts)):
        tail = folder.parts[-length:]
        if sum(other.parts[-length:] == tail for other in others) == 1:
            return "/".join(tail)
    return str(folder)


def _find(systems: Sequence[System], baseline: str | None) -> System:
    if baseline is None:
        return systems[0]
    found = [one for one in systems if baseline == one.label]
    found = found or [one for one in systems if baseline == one.evaluation.system]
    if len(found) == 1:
        return found[0]
    names = ", ".join(repr(one.label) for one in found or systems)
    if found:
        raise ScoreError(f"the baseline {baseline!r} is {len(found)} systems; say one of {names}")
    raise ScoreError(f"there is no system {baseline!r} to be the baseline; say one of {names}")


def _refuse_strangers(study: Study) -> None:
    """Each system must have been evaluated on a test set that the baseline was evaluated on."""
    known = study.baseline.evaluation.outcomes
    for system in study.systems:
        if not known.keys() & system.evaluation.outcomes.keys():
            theirs, ours = (", ".join(one) for one in (system.evaluation.outcomes, known))
            raise ScoreError(
                f"{system.evaluation.folder}: has no test set in common with the baseline "
                f"{study.baseline.label} ({theirs}; {ours}); report on it alone"
            )
