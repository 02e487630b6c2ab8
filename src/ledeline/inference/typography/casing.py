"""Capitals: the first letter, and names as the lede writes them."""

from collections.abc import Iterator
from typing import Final

from ledeline.core.patterns import lazy_pattern
from ledeline.inference.checks.common_words import is_both, is_common
from ledeline.inference.checks.pair_words import stem_of
from ledeline.inference.typography.draft import WORD, Edit, LedeText, is_title

_FIRST: Final = lazy_pattern(r"['\"(]*([a-z]+)(?![\w.@])")
_CAMEL: Final = lazy_pattern(r"[a-z][A-Z]")
_OPENS: Final = lazy_pattern(r"[.:!?;\"]|(?<!\w)'|^ ?- ?$")
_MAX_INITIALS: Final = 5


def casing_edits(text: str, lede: LedeText) -> Iterator[Edit]:
    """Words whose capitals are not those of the lede, if these are certain."""
    first = _FIRST.match(text)
    forms, others = lede.forms, set(WORD.findall(text)) - lede.written
    unlike = others and any(word.lower() in forms for word in others)
    if not (first or unlike) or lede.text.islower() or lede.text.isupper():
        return
    begins = first.start(1) if first else -1
    for found in WORD.finditer(text):
        word, start = found[0], found.start()
        there = forms.get(word.lower(), set())
        if start == begins and there and (word not in there or _is_word(word)):
            yield Edit(start, start + 1, word[0].upper())
        elif word not in there and len(there) == 1:
            (own,) = there
            if (own[0].isupper() or start) and _is_certain(word, own, text, lede):
                yield Edit(start, found.end(), own)


def _is_certain(word: str, own: str, text: str, lede: LedeText) -> bool:
    """Whether a word of the headline is the name that the lede writes in another way."""
    if _CAMEL.search(word) or sum(map(str.isupper, word)) > len(word) / 2:  # McCARTHY
        return False
    if _is_word(word.lower()):
        return False
    if _CAMEL.search(own):  # Youtube
        return True
    if _is_mixed(word):  # DAlit
        return not _is_mixed(own) and not word[:-1].isupper()
    if word[0].isupper():  # Fema, in a title
        are_initials = own.isupper() and 2 < len(own) <= _MAX_INITIALS
        return are_initials and is_title(text) and _is_name(own, lede)
    return own[0].isupper() and own[1:].islower() and _is_name(own, lede, least=2)  # mickey


def _is_word(low: str) -> bool:
    """Whether it is a word of the language, so that it may be no name in the headline."""
    stem = stem_of(low)
    return is_common(low, stem) or is_both(stem)


def _is_mixed(word: str) -> bool:
    """Whether it has a capital behind its first letter, and a small one."""
    return not (word[1:].islower() or word.isupper() or word.islower() or len(word) == 1)


def _is_name(own: str, lede: LedeText, *, least: int = 1) -> bool:
    """Whether the lede has a word as a name: inside sentences, and not among words in capitals."""
    found = [n for n, word in enumerate(lede.words) if word[0] == own]
    inside = [n for n in found if n and not _OPENS.search(lede.between(n))]
    return len(inside) >= least and (own[1:].islower() or not any(map(lede.is_in_capitals, inside)))
