"""An audit of odd generation: the odd words of each headline, of all, and the worst headlines."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NamedTuple, Self, TypeAlias

from ledeline.core.errors import ScoreError
from ledeline.core.progress import Progress, no_progress
from ledeline.corpus.columns import read_parallel_columns
from ledeline.evaluation.check_counts import CheckCounts, check_headlines
from ledeline.evaluation.odd_words import KINDS, OddWords, count_odd_words, total_odd_words
from ledeline.inference.checks.check import Check
from ledeline.text.profiles import Profile

Text: TypeAlias = str | Sequence[str]

_UNKNOWN: Final = re.compile("(<unk>|<UNK>)")


@dataclass(frozen=True)
class Audit:
    """The odd words in the headlines of one system."""

    odds: tuple[OddWords, ...]  # one per headline, in order

    @property
    def total(self) -> OddWords:
        """The sums over all headlines."""
        return total_odd_words(self.odds)

    def knows(self, kind: str) -> bool:
        """Whether words of a kind are counted; irrelevant ones only where sources were given."""
        return self._counts(kind) is not None

    def histogram(self, kind: str) -> list[int] | None:
        """At place n, how many headlines have n odd words of a kind; None where that is unknown."""
        counts = self._counts(kind)
        if counts is None:
            return None
        times = Counter(counts)
        return [times[number] for number in range(max(counts, default=-1) + 1)]

    def worst(self, kind: str, limit: int) -> list[int]:
        """Places of the headlines with the most odd words of a kind, worst first, then in order."""
        counts = self._counts(kind) or []
        found = [place for place, number in enumerate(counts) if number > 0]
        return sorted(found, key=lambda place: -counts[place])[: max(0, limit)]

    def _counts(self, kind: str) -> list[int] | None:
        if kind not in KINDS:
            raise ValueError(f"no kind of odd word: {kind!r}")
        counts = [getattr(one, kind) for one in self.odds]
        return None if None in counts else counts


def audit(
    outputs: Sequence[Text], references: Sequence[Text], sources: Sequence[Text] | None = None
) -> Audit:
    """Count the odd words of headlines; without sources, irrelevant ones are unknown.

    A text is a list of words, or a string of words with white space between.
    """
    lengths = {len(texts) for texts in (outputs, references, sources) if texts is not None}
    if len(lengths) > 1:
        raise ScoreError(
            f"outputs, references and sources must have the same length, not {sorted(lengths)}"
        )
    ledes = [None] * len(outputs) if sources is None else map(_words, sources)
    return Audit(tuple(map(count_odd_words, map(_words, outputs), map(_words, references), ledes)))


def _words(text: Text) -> Sequence[str]:
    return text.split() if isinstance(text, str) else text


def compared_words(text: str, profile: Profile | None) -> list[str]:
    """The words of a text that are compared: those of a profile, or all between white space.

    The mark of an unknown word stays one word, also in a profile without unknown words.
    """
    if profile is None:
        return text.split()
    if profile.unknown_words or not _UNKNOWN.search(text):
        return profile.compared_words(profile.words(text))
    words: list[str] = []
    for part in _UNKNOWN.split(text):
        words += [part] if _UNKNOWN.fullmatch(part) else profile.compared_words(profile.words(part))
    return words


def binned(histogram: Sequence[int], last: int) -> list[int]:
    """A histogram with bins from 0 to `last`; the last bin is for that number and all above."""
    places = [*histogram[:last], *[0] * (last - len(histogram))]
    return [*places, sum(histogram[last:])]


@dataclass(frozen=True)
class AuditSummary:
    """An audit without its headlines: sums and histograms, None where a kind is unknown."""

    num_pairs: int
    total: OddWords
    histograms: dict[str, tuple[int, ...] | None]  # by kind; see `Audit.histogram`

    @classmethod
    def of(cls, audit: Audit) -> Self:
        """Sum up an audit."""
        histograms = {kind: audit.histogram(kind) for kind in KINDS}
        return cls(
            len(audit.odds),
            audit.total,
            {kind: None if one is None else tuple(one) for kind, one in histograms.items()},
        )

    def as_dict(self) -> dict[str, Any]:
        """For JSON: what `ledeline audit --json` prints."""
        return {
            "pairs": self.num_pairs,
            **{kind: getattr(self.total, kind) for kind in KINDS},
            "histograms": {
                kind: None if one is None else list(one) for kind, one in self.histograms.items()
            },
        }


def as_dict(audit: Audit) -> dict[str, Any]:
    """An audit for JSON; see `AuditSummary`."""
    return AuditSummary.of(audit).as_dict()


def per_pair_lines(audit: Audit, checks: Sequence[Check] | None = None) -> Iterator[str]:
    """The counts of each headline as lines of TSV under a header, an empty cell where unknown.

    With checks, support and the number of doubts follow. The lines have no line ends yet.
    """
    yield "\t".join(KINDS if checks is None else (*KINDS, "support", "doubts"))
    for place, one in enumerate(audit.odds):
        counts = [getattr(one, kind) for kind in KINDS]
        if checks is not None:
            support, doubts = checks[place].support, checks[place].doubts
            counts += [support, None if support is None else len(doubts)]
        yield "\t".join("" if number is None else str(number) for number in counts)


# --- files ----------------------------------------------------------------------------------------


class AuditedTexts(NamedTuple):
    """The texts of an audit, as the words that were compared."""

    outputs: Sequence[Sequence[str]]
    references: Sequence[Sequence[str]]
    sources: Sequence[Sequence[str]] | None = None


class AuditedFiles(NamedTuple):
    """The audits of systems by name, and their texts."""

    systems: dict[str, Audit]
    texts: dict[str, AuditedTexts]
    checks: dict[str, list[Check]]  # of each headline; empty if nothing was checked

    @property
    def check_counts(self) -> dict[str, CheckCounts]:
        """What the checks of each system found."""
        return {name: CheckCounts.of(checks) for name, checks in self.checks.items()}

    def as_dict(self) -> dict[str, Any]:
        """For JSON, by system: `checks` only if they were checked."""
        counts = self.check_counts
        return {
            name: as_dict(one) | ({"checks": counts[name].as_dict()} if name in counts else {})
            for name, one in self.systems.items()
        }


def audit_files(
    outputs: Sequence[str],
    reference: str,
    source: str | None,
    profile: Profile | None,
    *,
    check: bool = False,
    progress: Progress = no_progress,
) -> AuditedFiles:
    """Audit the headlines of files. Words are those of a profile, or all between white space.

    With `check`, headlines are checked against their sources, as both are in the files.
    """
    if check and source is None:
        raise ScoreError("headlines are checked against their sources, and none are given")
    files = [(name, "headline") for name in (*outputs, reference)]
    columns = read_parallel_columns([*files, (source, "lede")] if source is not None else files)
    words = [[compared_words(text, profile) for text in column] for column in columns]
    sources = None if source is None else words.pop()
    references = words.pop()
    names = _system_names(outputs)
    texts = [AuditedTexts(output, references, sources) for output in words]
    systems = {name: audit(*one) for name, one in zip(names, texts, strict=True)}
    written = dict(zip(names, columns, strict=False))  # references and sources come behind
    checks = check_headlines(written, columns[-1], progress) if check else {}
    return AuditedFiles(systems, dict(zip(names, texts, strict=True)), checks)


def _system_names(files: Sequence[str]) -> Sequence[str]:
    """The names of systems: those of their files without suffix, where these differ."""
    for file in files:
        if files.count(file) > 1:
            raise ScoreError(f"{file} is named {files.count(file)} times; name each file once")
    names = [Path(file).name.partition(".")[0] for file in files]
    return names if len(set(names)) == len(names) else files
