"""A headline with its score, warnings and alignment: what a `Headliner` returns for a text."""

import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, TypeAlias

from ledeline.core.errors import RenamedWarning
from ledeline.inference.checks.doubt import Doubt

if TYPE_CHECKING:
    from rich.console import RenderableType

WarningKind: TypeAlias = Literal[
    "empty", "invalid", "unseen", "cut", "truncated", "repetition", "doubt", "left out"
]
Matrix: TypeAlias = tuple[tuple[float, ...], ...]

WARNING_KINDS: Final[dict[WarningKind, str]] = {
    "empty": "the text has no words",
    "invalid": "the input is not a text: it is not a string, or not UTF-8",
    "unseen": "the text or the headline has characters that the model does not know",
    "cut": "the text is longer than the model reads; its end was not read",
    "truncated": "no headline ended within the limit; the likeliest beginning is returned",
    "repetition": "a content word occurs more often in the headline than in the text",
    "doubt": "the text does not support some words of the headline, or does not seem to",
    "left out": "no headline had as much support as was asked for",
}


class HeadlineWarning(NamedTuple):
    """Something that a reader of the headline should know."""

    kind: WarningKind
    message: str  # one sentence that names the words or numbers

    def __str__(self) -> str:
        return f"{self.kind}: {self.message}"


class Candidate(NamedTuple):
    """A headline of the n-best list."""

    text: str
    tokens: tuple[str, ...]  # its words, without marks of the text profile
    score: float  # mean log-probability of its sub-words and their end; 0 is certainty
    truncated: bool = False
    support: float | None = None  # how far the text supports it, from 0 to 1; None: not checked
    doubts: tuple[Doubt, ...] = ()


class Link(NamedTuple):
    """A word of the headline and the word of the source it came from."""

    headline: int  # index of the word in the headline, from 0
    source: int  # index of the word in the source, from 0
    spm: float | None  # probability that the SPM gives to the source word; None without SPM
    attention: float  # share of the attention that went to it


@dataclass(frozen=True)
class Alignment:
    """Which source word each headline word came from, and which source words were dropped.

    Each word includes the space before it, so that joining the words gives the text.
    """

    source: tuple[str, ...]  # I words
    headline: tuple[str, ...]  # J words
    attention: Matrix  # (J, I): mean attention of the word's sub-words; rows sum to 1
    spm: Matrix | None  # (J, I): mean probability by the SPM; None for a system without SPM

    @cached_property
    def links(self) -> tuple[Link, ...]:
        """One for each headline word: the source word most likely by the SPM, else by attention.

        A word that occurs in the source is linked to it there; of several occurrences, to the most
        likely one. A word to which the SPM gives no probability is linked by attention.
        """
        return tuple(self._link(j) for j in range(len(self.headline)))

    def _link(self, j: int) -> Link:
        attention, spm = self.attention[j], self.spm[j] if self.spm is not None else None
        places = self._places.get(_bare(self.headline[j]), range(len(self.source)))
        shares = spm if spm and any(spm[i] for i in places) else attention
        best = max(places, key=shares.__getitem__)
        return Link(j, best, spm[best] if spm else None, attention[best])

    @cached_property
    def _places(self) -> dict[str, list[int]]:
        """Positions of each word of the source, ignoring case."""
        places: dict[str, list[int]] = {}
        for i, word in enumerate(self.source):
            places.setdefault(_bare(word), []).append(i)
        return places

    @cached_property
    def dropped(self) -> tuple[int, ...]:
        """Positions of the source words that no headline word is linked to."""
        used = {link.source for link in self.links}
        return tuple(i for i in range(len(self.source)) if i not in used)

    def as_dict(self) -> dict[str, Any]:
        """For JSON: a list of the headline's words, and one of the dropped words."""
        words = [
            {
                "word": self.headline[link.headline].strip(),
                "source": self.source[link.source].strip(),
                "place": link.source,
                "spm": link.spm,
                "attention": link.attention,
            }
            for link in self.links
        ]
        dropped = [{"word": self.source[i].strip(), "place": i} for i in self.dropped]
        return {"words": words, "dropped": dropped}


def _bare(word: str) -> str:
    """A word without space and case, for comparison."""
    return word.strip().casefold()


@dataclass(frozen=True)
class Headline:
    """The headline of one text; `str` of it is its text.

    Where no headline can be written it is empty and falsy, without a score, and a warning says why.
    """

    source: str | None  # as given; None if that was not a text
    text: str
    tokens: tuple[str, ...] = ()
    score: float | None = None
    alternatives: tuple[Candidate, ...] = ()  # the n-best list if asked for, this headline first
    truncated: bool = False
    warnings: tuple[HeadlineWarning, ...] = ()
    alignment: Alignment | None = None
    support: float | None = None  # how far the text supports it, from 0 to 1; None: not checked
    doubts: tuple[Doubt, ...] = ()  # words that the text does not support

    def __str__(self) -> str:
        return self.text

    def __bool__(self) -> bool:
        return bool(self.text)

    def __iter__(self) -> Iterator[str]:
        return iter(self.tokens)

    def as_dict(self) -> dict[str, Any]:
        """What `ledeline generate --json` writes.

        `support` and `doubts` where it was checked, `alternatives`, `alignment` where asked for.
        """
        fields: dict[str, Any] = {
            "source": self.source,
            "headline": self.text,
            "score": self.score,
            "truncated": self.truncated,
            "warnings": [warning._asdict() for warning in self.warnings],
        }
        if self.support is not None:
            fields |= _checked(self)
        if self.alternatives:
            fields["alternatives"] = [
                {"headline": one.text, "score": one.score, "truncated": one.truncated}
                | (_checked(one) if one.support is not None else {})
                for one in self.alternatives
            ]
        if self.alignment is not None:
            fields["alignment"] = self.alignment.as_dict()
        return fields

    def __rich__(self) -> "RenderableType":
        from ledeline.inference.display import render_terminal

        return render_terminal(self)

    def _repr_html_(self) -> str:
        from ledeline.inference.display import render_html

        return render_html(self)


def _checked(one: Headline | Candidate) -> dict[str, Any]:
    """Support and doubts, for JSON."""
    return {"support": one.support, "doubts": [doubt.as_dict() for doubt in one.doubts]}


def __getattr__(name: str) -> Any:
    """Old names, for one more version."""
    if name == "Caution":
        warnings.warn(
            f"{__name__}.Caution is called HeadlineWarning now", RenamedWarning, stacklevel=2
        )
        return HeadlineWarning
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
