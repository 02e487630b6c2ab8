"""Spaces around marks, doubled marks, and marks that stand alone at an end."""

from collections.abc import Callable, Iterator
from re import Match, Pattern
from typing import Final, TypeAlias

from ledeline.core.patterns import lazy_pattern
from ledeline.inference.typography.draft import Edit, LedeText

_Mend: TypeAlias = Callable[[Match[str], LedeText], str | None]

# A text in which this finds nothing needs none of the rules below.
_ANY: Final = lazy_pattern(
    r" (?:'(?:s|re|ve|ll|d|m|S| )|n't|[.,;:!?%)\]/&-])|[$£€(\[/-] |--|\.\.|[,;:]{2}"
    r"|\b[A-Z]\. ?[A-Z](?!\w)"
    r"|^[^\w'\"$£€#@(\[]|[^\w'\"!?)%\]]$"
)
_SPACES: Final = lazy_pattern(r" +")
_SHORT: Final = 4  # letters of an abbreviation
_SENTENCE_END: Final = lazy_pattern(r"[.!?][\"']? ")


def _nothing(found: Match[str], lede: LedeText) -> str:  # noqa: ARG001
    return ""


def _dash(found: Match[str], lede: LedeText) -> str:  # noqa: ARG001
    return " - "


def _first(found: Match[str], lede: LedeText) -> str:  # noqa: ARG001
    return found[0][:1]


def _as_in_lede(found: Match[str], lede: LedeText) -> str | None:
    """Without spaces, if the lede has it so."""
    joined = found[0].replace(" ", "")
    return joined if joined.lower() in lede.low else None


def _currency(found: Match[str], lede: LedeText) -> str | None:
    """A sign beside its number, unless the lede has a space there too, as in R$ 5."""
    is_lone = len(found[1]) == 1
    return None if found[0] in lede.text and not is_lone else found[1]


def _last_period(found: Match[str], lede: LedeText) -> str | None:
    """`U.S` with its last period, if the lede always has it."""
    whole = f"{found[0]}."
    return whole if 0 < lede.text.count(found[0]) == lede.text.count(whole) else None


def _dots(found: Match[str], lede: LedeText) -> str:
    """An ellipsis; or the end of the lede, or one period if the lede has an abbreviation there."""
    word = found[1] or ""
    if word and len(found[0]) == len(word) + 2:
        if lede.text.endswith(f" {word}.") and found.end() == len(found.string):
            return word
        if len(word) <= _SHORT and f" {word}. " in lede.text:
            return f"{word}."
    return f"{word}..."


def _period(found: Match[str], lede: LedeText) -> str | None:
    """Nothing for the period of a sentence, unless it may be an abbreviation's or there are two."""
    word = found[1]
    several = _SENTENCE_END.search(found.string) is not None
    return None if several or f"{word}. " in lede.text else word


_RULES: Final[tuple[tuple[Pattern[str], _Mend], ...]] = tuple(
    (lazy_pattern(pattern), mend)
    for pattern, mend in (
        (r"(?<=\w) (?='(?:s|re|ve|ll|d|m|S)(?![\w'*-]))", _nothing),  # they 'd
        (r"(?<=\w) (?=n't(?!\w))", _nothing),  # did n't
        (r"(?<=[^\W_]) ' (?=\d0s)", lambda found, lede: " '"),  # noqa: ARG005  ' 90s
        (r"(?<=\S) (?=[,;!?)\]](?:[\s'\")]|$))", _nothing),
        (r"(?<=[\w)\]'\"%+.]) (?=:(?:\s|$))", _nothing),
        (r"(?<=[\w)\]'\"%+]) (?=\.(?:\s|$))", _nothing),
        (r"(?<=\d) (?=%(?!\w))", _nothing),
        (r"(?<=[(\[]) (?=\S)", _nothing),
        (r"(?<!\w)((?:[A-Z]{1,3})?[$£€]) (?=\d)", _currency),
        (r"(?<!\S)[\w.]+(?: ?[-/&] | [-/&])[\w.]+(?!\S)", _as_in_lede),  # U.S. - led
        (r" --? ?-? (?=\S)(?<=-- )", _dash),
        (r"\b(?:[A-Z]\. )+[A-Z]\.(?!\w)", _as_in_lede),  # U. S.
        (r"(?<![\w.])(?:[A-Z]\.)+[A-Z](?![\w.'])", _last_period),
        (r"(?<!\.)(\b\w{1,20})?(?:\.\.(?!\.)|\.{4,})", _dots),
        (r",{2,}|;{2,}|:{2,}", _first),
        (r"^(?:[,;:|.] ?|- )+(?=['\"\w])", _nothing),
        (r"(?<=[^\s,;:|/-])(?:[\s,;:|/]|(?<!-)-)+$", _nothing),
        (r"(?<=\s)([a-z]{4,20})\.$", _period),
    )
)


def trim_edits(text: str, lede: LedeText) -> Iterator[Edit]:  # noqa: ARG001
    """Spaces that the rules left: at an end, or two of them."""
    if text.strip() != text or "  " in text:
        for found in _SPACES.finditer(text):
            inside = found.start() > 0 and found.end() < len(text)
            if found[0] != " " or not inside:
                yield Edit(found.start(), found.end(), " " if inside else "")


def spacing_rules(text: str) -> tuple[tuple[Pattern[str], _Mend], ...]:
    """The rules that a text needs."""
    return _RULES if _ANY.search(text) else ()


def spacing_edits(text: str, lede: LedeText, pattern: Pattern[str], mend: _Mend) -> Iterator[Edit]:
    """What a rule changes."""
    for found in pattern.finditer(text):
        new = mend(found, lede)
        if new is not None and new != found[0]:
            yield Edit(found.start(), found.end(), new)
