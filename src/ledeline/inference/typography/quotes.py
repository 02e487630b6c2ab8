"""Quotation marks: each opened is closed, and all of a headline have one style.

Headlines have single quotes, and double ones inside single ones.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from ledeline.core.patterns import lazy_pattern
from ledeline.inference.typography.draft import Edit, LedeText
from ledeline.inference.typography.quoted_words import closing_place, opening_place

_MARK: Final = lazy_pattern(r"['\"]")
_TREEBANK_MARK: Final = lazy_pattern(r"``|''|['\"]")
_HAS_TREEBANK_MARK: Final = lazy_pattern(r"``|(?<!\S)''")
_CURLY: Final = str.maketrans("‘’“”", "''\"\"")
# An apostrophe in place of letters: '90s, 'em, rock 'n' roll.
_ELISION: Final = lazy_pattern(
    r"'(?:\d\ds?|em|til|n|tis|twas|cause|bout|cuz|un|av|ave|ello|bye|s)\b", re.I
)
_SUFFIX: Final = lazy_pattern(r"'s\b")  # of a quotation: 'Destiny 2''s
_CUT_WORD: Final = lazy_pattern(r"\b(?:\w{1,15}in|ol|lil|o|n|an|th|wi|d|t)'$", re.I)
_BEFORE: Final = "([{-/:"
_BEHIND: Final = ",.;:!?)]}-/…"
_PLURAL: Final = "sxzSXZ"
_MOST: Final = 16  # marks of a headline; a text with more is none
_NEAR: Final = 20  # characters on each side that tell what a mark is


@dataclass(slots=True)
class _Mark:
    """A mark that opens or closes a quotation, or an apostrophe at the edge of a word."""

    start: int
    end: int
    text: str
    role: Literal["open", "close", ""]  # "": it stands between spaces, and its place decides
    soft: bool  # may be an apostrophe
    is_apostrophe: bool = False
    is_apart: bool = False  # from the words it belongs to
    depth: int = -1  # how many quotations its own is in; -1: it has no partner

    @property
    def is_double(self) -> bool:
        """Whether it is of two strokes."""
        return self.text != "'"


def straight_edits(text: str, lede: LedeText) -> Iterator[Edit]:  # noqa: ARG001
    """Curly marks become straight where there are straight ones, too."""
    if not text.isascii() and ("'" in text or '"' in text):
        for place, mark in enumerate(text):
            if mark in "‘’“”":
                yield Edit(place, place + 1, mark.translate(_CURLY))


def quote_edits(text: str, lede: LedeText) -> Sequence[Edit]:
    """Marks that are missing, too many, of the other style, or apart from their words."""
    marks = _marks(text) if "'" in text or '"' in text or "``" in text else []
    if not 0 < len(marks) <= _MOST:
        return ()
    _pair(text, marks)
    keep_style = _keep_style(marks)
    edits, before = list[Edit](), 0
    for mark, behind in zip(marks, _next_places(marks, len(text)), strict=True):
        if mark.is_apostrophe:
            edits += [Edit(mark.start - 1, mark.start)] if mark.is_apart else []
        elif mark.depth >= 0:
            edits += _styled(text, mark, keep_style=keep_style)
        else:
            edits += _mended(text, mark, range(before, behind), lede)
        before = before if mark.is_apostrophe else mark.end
    return sorted(edits)


def _keep_style(marks: Sequence[_Mark]) -> bool:
    """Whether all quotations have one style, and single marks would be mistaken."""
    styles = {one.is_double for one in marks if one.depth >= 0}
    return len(styles) == 1 and any(one.is_apostrophe for one in marks)


def _next_places(marks: Sequence[_Mark], size: int) -> list[int]:
    """Where the next mark begins that is no apostrophe."""
    places, behind = list[int](), size
    for mark in reversed(marks):
        places.append(behind)
        behind = behind if mark.is_apostrophe else mark.start
    return places[::-1]


def _marks(text: str) -> list[_Mark]:
    """The marks of a text, but those inside words."""
    marks = list[_Mark]()
    pattern = _TREEBANK_MARK if _HAS_TREEBANK_MARK.search(text) else _MARK
    for found in pattern.finditer(text):
        start, end, mark = found.start(), found.end(), found[0]
        before = text[max(0, start - _NEAR) : start].rstrip("'\"")[-1:]
        follows = text[end : end + _NEAR]
        behind = "." if _SUFFIX.match(follows) else follows.lstrip("'\"")[:1]
        begins, ends = not before.strip(), not behind.strip()
        if mark == "``" or ((begins or before in _BEFORE) and not (ends or behind in _BEHIND)):
            soft = mark == "'" and _ELISION.match(text, start) is not None
            marks.append(_Mark(start, end, mark, "open", soft))
        elif (ends or behind in _BEHIND) and not begins:
            cut = before in _PLURAL or _CUT_WORD.search(text, max(0, start - _NEAR), start + 1)
            marks.append(_Mark(start, end, mark, "close", mark == "'" and bool(cut)))
        elif begins and (ends or behind in _BEHIND):
            marks.append(_Mark(start, end, mark, "", mark == "'", is_apart=True))
    return marks


def _pair(text: str, marks: Sequence[_Mark]) -> None:
    """Find which marks belong together, and which are apostrophes."""
    opened = list[_Mark]()
    for mark, closers in zip(marks, _closers_behind(marks), strict=True):
        if not mark.role:
            mark.role = "close" if opened or text[mark.end : mark.end + 1] not in " " else "open"
            is_plural = 1 < mark.start < len(text) - 1 and text[mark.start - 2] in _PLURAL
            mark.is_apostrophe = mark.soft and mark.role == "open" and is_plural and not closers
        elif mark.soft:  # '90s; the leaders' talks
            mark.is_apostrophe = (
                closers <= len(opened) if mark.role == "open" else closers >= len(opened)
            )
        if mark.is_apostrophe:
            continue
        if mark.role == "open":
            opened.append(mark)
        elif opened:
            _close(mark, opened)


def _closers_behind(marks: Sequence[_Mark]) -> list[int]:
    """How many marks between each and the next that opens a quotation may close one."""
    numbers, number = list[int](), 0
    for mark in reversed(marks):
        numbers.append(number)
        number = 0 if mark.role == "open" else number + 1
    return numbers[::-1]


def _close(mark: _Mark, opened: list[_Mark]) -> None:
    """Pair a closing mark with the last opened one, or with one before it of its own style."""
    last = len(opened) - 1
    same = opened[last].is_double == mark.is_double or last == 0
    number = last if same or opened[last - 1].is_double != mark.is_double else last - 1
    mark.depth = opened[number].depth = number
    del opened[number:]


def _styled(text: str, mark: _Mark, *, keep_style: bool) -> Iterator[Edit]:
    """The mark as headlines have it, beside its words."""
    is_double = mark.is_double if keep_style else mark.depth % 2
    start, end = mark.start, mark.end
    if mark.role == "open" and text[end : end + 1] == " ":
        end += 1
    elif mark.role == "close" and mark.is_apart and text[start - 1 : start] == " ":
        start -= 1
    new = '"' if is_double else "'"
    if new != text[start:end]:
        yield Edit(start, end, new)


def _mended(text: str, mark: _Mark, room: range, lede: LedeText) -> Iterator[Edit]:
    """The partner that a mark lacks, where the lede shows its place; else without the mark.

    The partner stands within the room between the marks before and behind.
    """
    start, end = mark.start, mark.end
    if mark.role == "open":
        place = closing_place(text, end, room.stop, lede)
        end += text[end : end + 1] == " "
    else:
        if mark.text == '"' and text[start - 1 : start].isdigit():
            return  # inches
        if mark.text == "'" and text[max(0, start - _NEAR) : end].split(" ")[-1] in lede.text:
            return  # an apostrophe that the lede has too
        place = opening_place(text, start, room.start, lede)
        start -= mark.is_apart and text[start - 1 : start] == " "
    own = "'" if place is not None else ""
    if text[start:end] != own:
        yield Edit(start, end, own)
    if place is not None:
        yield Edit(place, place, "'")
