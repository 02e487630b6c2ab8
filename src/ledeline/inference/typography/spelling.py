"""British or American spelling, as the lede has it.

A word whose other form stands in the lede takes that. Else, where the lede has words of one
spelling and none of the other, words in lower case take that spelling.
"""

import re
from collections.abc import Iterator
from typing import Final

from ledeline.core.patterns import lazy_pattern
from ledeline.inference.typography.draft import WORD, Edit, LedeText, is_title
from ledeline.inference.typography.spelling_table import Variant, spelling_variants

_WORD: Final = lazy_pattern(r"(?<![\w@#/._])[A-Za-z]{2,20}(?![\w@_]|\.\w)")
_BRITISH: Final = frozenset(["british", "ise"])
_BEHIND: Final = lazy_pattern(r" (\w{1,20})")
_PARTIES: Final = frozenset(["labour", "labor", "centre", "center"])  # parties, a government
_PERCENT: Final = lazy_pattern(r"(?<=\d )per ?cent\b")


def spelling_edits(text: str, lede: LedeText) -> Iterator[Edit]:
    """Words in the other spelling than the lede's."""
    variants = spelling_variants()
    if variants.keys().isdisjoint(WORD.findall(text.lower())):
        return
    for found in _WORD.finditer(text):
        word = found[0]
        variant = variants.get(word.lower())
        if variant is not None and (new := _other_form(found, variant, lede)):
            yield Edit(found.start(), found.end(), new)


def percent_edits(text: str, lede: LedeText) -> Iterator[Edit]:
    """`percent` or `per cent` behind a number, whichever the lede has."""
    found = _PERCENT.search(text) if "cent" in text else None
    own = _PERCENT.search(lede.text) if found else None
    if found and own and found[0] not in lede.text:
        for one in _PERCENT.finditer(text):
            yield Edit(one.start(), one.end(), own[0])


def _other_form(found: re.Match[str], variant: Variant, lede: LedeText) -> str | None:
    """The form that the lede asks for, if it is not the word's own."""
    word, there = found[0], lede.forms.get(variant.other)
    if word.lower() in lede.forms:
        return None
    if there is None:
        asks = word.islower() and variant.reach != "word" and _asks_for_other(variant, lede)
        return variant.other if asks else None
    # What the lede has only in a name is for names only, and names take only that.
    if word.islower():
        return variant.other if variant.other in there else None
    new = variant.other.upper() if word.isupper() else variant.other.capitalize()
    if new in there or (variant.other in there and not _may_be_name(found, variant.other, lede)):
        return new
    return None


def _may_be_name(found: re.Match[str], other: str, lede: LedeText) -> bool:
    """Whether a word with a capital may be a part of a name."""
    text, word = found.string, found[0]
    if text.startswith(word) and word.lower() not in _PARTIES:
        return text[found.end() + 1 : found.end() + 2].isupper()
    behind = _BEHIND.match(text, found.end())
    follows = behind is not None and f"{other} {behind[1].lower()}" in lede.low
    return not (follows and is_title(text))


def _asks_for_other(variant: Variant, lede: LedeText) -> bool:
    """Whether the words of the lede have the other spelling only, as far as it tells."""
    votes = _votes(lede)
    if variant.reach == "ize":
        same, other = ("ise", "ize") if variant.is_british else ("ize", "ise")
        if other in votes:
            return same not in votes
    if variant.is_british:
        return "american" in votes and votes.isdisjoint(_BRITISH)
    return variant.reach == "both" and not votes.isdisjoint(_BRITISH) and "american" not in votes


def _votes(lede: LedeText) -> set[str]:
    """The spellings that words of the lede have; names do not count."""
    if lede.spellings is None:
        variants, lede.spellings = spelling_variants(), set()
        for word, forms in lede.forms.items():
            variant = variants.get(word) if word in forms else None
            if variant is None or variant.reach == "word":
                continue
            if variant.reach == "ize":
                lede.spellings.add("ise" if variant.is_british else "ize")
            elif variant.is_british:
                lede.spellings.add("british")
            elif variant.reach == "both":
                lede.spellings.add("american")
    return lede.spellings
