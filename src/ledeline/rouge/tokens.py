"""Tokens as ROUGE-1.5.5 makes them, on bytes.

The script turns A-Z into a-z, sets ``-`` apart and makes a space of every other byte that is no
letter and no digit; then a token must start with a letter, a digit or ``$``, which by then is a
space. So what is left is the runs of a-z and 0-9. A text is one line: a newline in it is a space.
"""

import re
from collections.abc import Callable
from typing import TypeAlias

from ledeline.rouge.rouge_settings import Settings
from ledeline.rouge.stem import STEMS

Tokenize: TypeAlias = Callable[[str], list[str]]

_MARK = r"(?<!\S)(?:<unk>|<UNK>|UNK)(?!\S)"
_MARK_AND_SPACE = re.compile(_MARK + r"\s?")
_MARK_OR_MASK = re.compile(_MARK + "|\0")
_MASK_CHARACTER = "\0"  # replaces each letter of a mark that must not match
_OTHER_SURROGATE = re.compile("[\ud800-\udc7f\udd00-\udfff]")  # those that stand for no byte


def _table(hole: str) -> bytes:
    lowered = (chr(byte).lower() if byte < 0x80 else " " for byte in range(0x100))
    kept = (char if char.isalnum() else " " for char in lowered)
    return (hole + "".join(kept)[1:]).encode("ascii")


_TABLE = _table(" ")
_TABLE_WITH_MASK = _table("?")  # a token that no reference has


def make_tokenizers(settings: Settings) -> tuple[Tokenize, Tokenize]:
    """Return the tokenizer of candidates and that of references."""
    reference = _make_tokenizer(settings, _TABLE)
    if settings.unknown == "keep":
        return reference, reference
    if settings.unknown == "strict":
        candidate = _make_tokenizer(settings, _TABLE_WITH_MASK)
        return lambda text: candidate(_masked(text)), reference

    def without_marks(text: str) -> list[str]:
        return reference(_MARK_AND_SPACE.sub("", text))

    return without_marks, without_marks


def _make_tokenizer(settings: Settings, table: bytes) -> Tokenize:
    limit = settings.limit_bytes

    def words(text: str) -> list[str]:
        known = text.encode("ascii", "replace") if limit is None else utf8(text)[:limit]
        return known.translate(table).decode("ascii").split()

    def stems(text: str) -> list[str]:
        return [STEMS[word] for word in words(text)]

    return stems if settings.stem else words


def _masked(text: str) -> str:
    """Mask the marks without changing their length, so that a limit in bytes cuts as before."""
    return _MARK_OR_MASK.sub(_mask, text)


def _mask(found: re.Match[str]) -> str:
    """The mask of a mark; a mask character of the text itself becomes a space."""
    return " " if found[0] == _MASK_CHARACTER else re.sub("[A-Za-z]", _MASK_CHARACTER, found[0])


def utf8(text: str) -> bytes:
    """Encode any string: a byte that was not UTF-8 is that byte, another surrogate three bytes."""
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return _OTHER_SURROGATE.sub("???", text).encode("utf-8", "surrogateescape")
