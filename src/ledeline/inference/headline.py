"""A headline with its reasons: what a `ledeline.inference.headliner.Headliner` gives for a text."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, TypeAlias

if TYPE_CHECKING:
    from rich.console import RenderableType

Kind: TypeAlias = Literal["empty", "invalid", "unseen", "cut", "truncated", "repetition"]
Rows: TypeAlias = tuple[tuple[float, ...], ...]

KINDS: Final[dict[Kind, str]] = {
    "empty": "the text has no words",
    "invalid": "the input is not a text: it is not a string, or not UTF-8",
    "unseen": "the text or the headline has characters that the model does not know",
    "cut": "the text is longer than the model reads; its end was not read",
    "truncated": "no headline ended within the limit; the likeliest beginning is returned",
    "repetition": "a content word occurs more often in the headline than in the text",
}


class HeadlineWarning(NamedTuple):
    """Something a reader of the headline should know."""

    kind: Kind
    message: str  # one sentence that names the words or numbers

    def __str__(self) -> str:
        return f"{self.kind}: {self.message}"


class Candidate(NamedTuple):
    """A headline of the n-best list."""

    text: str
    tokens: tuple[str, ...]  # its words, without marks of the text profile
    score: float  # mean log-probability of its sub-words and their end; 0 is certainty
    truncated: bool = False


class Link(NamedTuple):
    """A word of the headline and the word of the source it came from."""

    headline: int  # place among the words of the headline, from 0
    source: int  # place among the words of the source, from 0
    spm: float | None  # probability that the SPM gives to the source word; None without SPM
    attention: float  # share of the attention that went to it


@dataclass(frozen=True)
class Alignment:
    """Which source word each headline word came from, and which source words were dropped.

    The words come spaced: each with the space before it that belongs there, so that joining them
    gives the text.
    """

    source: tuple[str, ...]  # I words
    headline: tuple[str, ...]  # J words
    attention: Rows  # (J, I): mean attention of the word's sub-words; rows sum to 1
    spm: Rows | None  # (J, I): mean probability by the SPM; None for a system without SPM

    @cached_property
    def links(self) -> tuple[Link, ...]:
        """One for each headline word: the likeliest by the SPM, by attention where there is none.

        A word that the source has comes from there, however sure the model is; of several such
        places it is the likeliest. A word with no probability by the SPM is linked by attention.
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
        """Where each word of the source stands, in whatever case."""
        places: dict[str, list[int]] = {}
        for i, word in enumerate(self.source):
            places.setdefault(_bare(word), []).append(i)
        return places

    @cached_property
    def dropped(self) -> tuple[int, ...]:
        """Places of the source words that no headline word is linked to."""
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
    """A word without its space and its case, to compare by."""
    return word.strip().casefold()


@dataclass(frozen=True)
class Headline:
    """The answer to one text; `str` of it is the headline.

    A text that no headline can be written from has an empty one, no score, and a warning that says
    why. It is then falsy.
    """

    source: str | None  # as it was given; None where that was no text
    text: str
    tokens: tuple[str, ...] = ()
    score: float | None = None
    alternatives: tuple[Candidate, ...] = ()  # the n-best list if asked for, this headline first
    truncated: bool = False
    warnings: tuple[HeadlineWarning, ...] = ()
    alignment: Alignment | None = None

    def __str__(self) -> str:
        return self.text

    def __bool__(self) -> bool:
        return bool(self.text)

    def __iter__(self) -> Iterator[str]:
        return iter(self.tokens)

    def as_dict(self) -> dict[str, Any]:
        """What `ledeline generate --json` writes; `alternatives`, `alignment` where asked for."""
        fields: dict[str, Any] = {
            "source": self.source,
            "headline": self.text,
            "score": self.score,
            "truncated": self.truncated,
            "warnings": [caution._asdict() for caution in self.warnings],
        }
        if self.alternatives:
            fields["alternatives"] = [
                {"headline": one.text, "score": one.score, "truncated": one.truncated}
                for one in self.alternatives
            ]
        if self.alignment is not None:
            fields["alignment"] = self.alignment.as_dict()
        return fields

    def __rich__(self) -> "RenderableType":
        from ledeline.inference.display import terminal

        return terminal(self)

    def _repr_html_(self) -> str:
        from ledeline.inference.display import notebook

        return notebook(self)
