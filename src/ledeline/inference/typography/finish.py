"""A headline as a newspaper prints it: the rules, one after another."""

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import accumulate
from typing import Final, NamedTuple, TypeAlias

from ledeline.inference.typography.casing import casing_edits
from ledeline.inference.typography.draft import Edit, HeadlineDraft, LedeText
from ledeline.inference.typography.quotes import quote_edits, straight_edits
from ledeline.inference.typography.signs import sign_edits
from ledeline.inference.typography.spacing import spacing_edits, spacing_rules, trim_edits
from ledeline.inference.typography.spelling import percent_edits, spelling_edits
from ledeline.text.tokenizer import Tokenizer

_Rule: TypeAlias = Callable[[str, LedeText], Iterable[Edit]]

_RULES: Final[tuple[_Rule, ...]] = (
    quote_edits,
    sign_edits,
    percent_edits,
    spelling_edits,
    casing_edits,
    trim_edits,
)


_LONGEST: Final = 1000  # characters; a longer text is no headline


class PrintedWords(NamedTuple):
    """The words of a finished headline."""

    text: str
    words: tuple[str, ...]  # of the text profile
    origins: tuple[int, ...]  # for each, the number of the word that the model wrote for it


def finished_draft(text: str, lede: LedeText) -> HeadlineDraft:
    """The text of a headline as a newspaper prints it, and where each character was before."""
    draft = HeadlineDraft(text, range(len(text)))
    for rule in _rules(text) if len(text) <= _LONGEST else ():
        if edits := list(rule(draft.text, lede)):
            draft = draft.edited(edits)
    return draft


def finish(text: str, lede: str) -> str:
    """The text of a headline as a newspaper prints it."""
    return finished_draft(text, LedeText(lede)).text


def printed_words(
    text: str, written: Sequence[str], lede: LedeText, tokenizer: Tokenizer
) -> PrintedWords | None:
    """The words of a headline after it was finished; None if that changes nothing.

    `written` are the words of the text profile that make up the text.
    """
    draft = finished_draft(text, lede)
    if draft.text == text or not any(map(str.isalnum, draft.text)):
        return None
    words = tokenizer.words(draft.text)
    if tokenizer.join(words) != draft.text:  # characters that the profile writes in another way
        return None
    starts = list(accumulate(map(len, tokenizer.spaced(written)), initial=0))[:-1]
    origins, place = list[int](), 0
    for spaced in tokenizer.spaced(words):
        own = draft.places[place + spaced.startswith(" ")]
        origins.append(bisect_right(starts, own) - 1)
        place += len(spaced)
    return PrintedWords(draft.text, tuple(words), tuple(origins))


def _rules(text: str) -> Iterator[_Rule]:
    yield straight_edits
    for pattern, mend in spacing_rules(text):
        yield partial(spacing_edits, pattern=pattern, mend=mend)
    yield from _RULES
