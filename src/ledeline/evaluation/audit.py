"""Odd generation in anybody's headlines: what is odd in each, in all, and in which the most."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeAlias

from ledeline.core.errors import ScoreError
from ledeline.corpus.columns import read_parallel_columns
from ledeline.evaluation import odd_words
from ledeline.evaluation.odd_words import Odd
from ledeline.text.profiles import Profile

Text: TypeAlias = str | Sequence[str]

_UNKNOWN: Final = re.compile("(<unk>|<UNK>)")
KINDS: Final = ("repeating", "lacking", "irrelevant")


@dataclass(frozen=True)
class Audit:
    """What is odd in the headlines of one system."""

    odds: tuple[Odd, ...]  # one a headline, in order

    @property
    def total(self) -> Odd:
        """The sums over all headlines."""
        return odd_words.total(self.odds)

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

    A text is a list of words, or a string whose words are what stands between white space.
    """
    lengths = {len(texts) for texts in (outputs, references, sources) if texts is not None}
    if len(lengths) > 1:
        raise ScoreError(f"not as many outputs as references and sources: {sorted(lengths)}")
    ledes = [None] * len(outputs) if sources is None else map(_words, sources)
    return Audit(tuple(map(odd_words.count, map(_words, outputs), map(_words, references), ledes)))


def _words(text: Text) -> Sequence[str]:
    return text.split() if isinstance(text, str) else text


def split(text: str, profile: Profile | None) -> list[str]:
    """The words of a text that are compared: those of a profile, or all between white space.

    A mark for an unknown word stays one word, also in a profile that knows of none.
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
    """A histogram with places from 0 to `last`, which stands for that number and all above."""
    places = [*histogram[:last], *[0] * (last - len(histogram))]
    return [*places, sum(histogram[last:])]


def as_dict(audit: Audit) -> dict[str, Any]:
    """An audit for JSON: sums and histograms, None where a kind is unknown."""
    total = audit.total
    return {
        "pairs": len(audit.odds),
        **{kind: getattr(total, kind) for kind in KINDS},
        "histograms": {kind: audit.histogram(kind) for kind in KINDS},
    }


def per_pair_lines(audit: Audit) -> Iterator[str]:
    """The counts of each headline as lines of TSV under a header, an empty cell where unknown.

    The lines have no line ends yet.
    """
    yield "\t".join(KINDS)
    for one in audit.odds:
        counts = (getattr(one, kind) for kind in KINDS)
        yield "\t".join("" if number is None else str(number) for number in counts)


# --- files ----------------------------------------------------------------------------------------


class Texts(NamedTuple):
    """What was audited, as the words that were counted."""

    outputs: Sequence[Sequence[str]]
    references: Sequence[Sequence[str]]
    sources: Sequence[Sequence[str]] | None = None


class Audited(NamedTuple):
    """The audits of systems by name, and the texts they are of."""

    systems: dict[str, Audit]
    texts: dict[str, Texts]


def audit_files(
    outputs: Sequence[str], reference: str, source: str | None, profile: Profile | None
) -> Audited:
    """Audit the headlines of files; words are those of a profile, or what spaces part."""
    files = [(name, "headline") for name in (*outputs, reference)]
    columns = read_parallel_columns([*files, (source, "lede")] if source is not None else files)
    words = [[split(text, profile) for text in column] for column in columns]
    sources = None if source is None else words.pop()
    references = words.pop()
    names = _system_names(outputs)
    texts = [Texts(written, references, sources) for written in words]
    systems = {name: audit(*one) for name, one in zip(names, texts, strict=True)}
    return Audited(systems, dict(zip(names, texts, strict=True)))


def _system_names(files: Sequence[str]) -> Sequence[str]:
    """What to call systems: the names of their files without suffix, where these differ."""
    for file in files:
        if files.count(file) > 1:
            raise ScoreError(f"{file} is named {files.count(file)} times; name each file once")
    names = [Path(file).name.partition(".")[0] for file in files]
    return names if len(set(names)) == len(names) else files
