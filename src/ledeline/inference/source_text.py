"""A text as a model reads it: words, sub-word ids, and warnings."""

from collections.abc import Iterable
from itertools import chain, repeat
from typing import NamedTuple

from ledeline.inference.headline import HeadlineWarning
from ledeline.text.profiles import JOINER
from ledeline.text.subwords import UNK
from ledeline.text.tokenizer import Tokenizer

_SHOWN = 5  # words that a warning names at most


class SourceText(NamedTuple):
    """A text as a model reads it; without ids, no headline can be written."""

    text: str | None  # as given, without a line end; None if that was not a text
    words: tuple[str, ...] = ()  # of the text profile, as far as the model reads
    ids: tuple[int, ...] = ()
    word_ids: tuple[int, ...] = ()  # the word of each id, from 0
    warnings: tuple[HeadlineWarning, ...] = ()

    @property
    def unknown(self) -> list[int]:
        """The words that the model does not know in full, by number."""
        if UNK not in self.ids:
            return []
        return sorted(
            {word for word, id_ in zip(self.word_ids, self.ids, strict=True) if id_ == UNK}
        )

    def ids_of(self, word: int) -> tuple[int, ...]:
        """The ids of a word by its number."""
        return tuple(id_ for own, id_ in zip(self.word_ids, self.ids, strict=True) if own == word)


def read_source_text(given: object, number: int, tokenizer: Tokenizer, longest: int) -> SourceText:
    """Tokenize whatever was given as text `number`, up to `longest` sub-words.

    Never fails: what is not a text, is empty, or has only unknown characters gets no ids.
    """
    text = _text(given, number)
    if isinstance(text, HeadlineWarning):
        return SourceText(given if isinstance(given, str) else None, warnings=(text,))
    source = _cut(text, tuple(tokenizer.words(text)), tokenizer, longest)
    if not source.words:
        return source._replace(warnings=(HeadlineWarning("empty", f"text {number} has no words"),))
    if not any(_is_known(id_, tokenizer) for id_ in set(source.ids)):
        warning = HeadlineWarning("unseen", f"the model knows no character of text {number}")
        return SourceText(text, warnings=(warning,))
    if source.unknown:
        words = tokenizer.plain([source.words[word] for word in source.unknown])
        warning = HeadlineWarning("unseen", f"the model does not know {_listed(words)} in full")
        return source._replace(warnings=(*source.warnings, warning))
    return source


def _text(given: object, number: int) -> str | HeadlineWarning:
    """The text without a line end, or a warning if it is not a text."""
    if isinstance(given, bytes):
        try:
            given = given.decode("utf-8")
        except UnicodeDecodeError as error:
            byte = f"byte 0x{given[error.start]:02x} at byte {error.start + 1}"
            return HeadlineWarning("invalid", f"text {number} is not UTF-8: {byte}")
    if not isinstance(given, str):
        return HeadlineWarning(
            "invalid", f"text {number} must be a string, but its type is {type(given).__name__}"
        )
    try:  # surrogate pairs become one character; a lone one comes from bytes that are not UTF-8
        whole = given.encode("utf-16-le", "surrogatepass").decode("utf-16-le")
    except UnicodeDecodeError:
        return HeadlineWarning("invalid", f"text {number} is not UTF-8: it has half a character")
    return whole.rstrip("\r\n")


def _cut(text: str, words: tuple[str, ...], tokenizer: Tokenizer, longest: int) -> SourceText:
    """As many whole words as fit; if the first word is too long, its beginning."""
    ids, counts = tokenizer.encode_words(words[: longest + 1])  # each has one id at least
    word_ids = list(chain.from_iterable(map(repeat, range(len(counts)), counts)))
    if len(ids) <= longest:
        return SourceText(text, words, tuple(ids), tuple(word_ids))
    num_read = word_ids[longest] or 1
    size = min(sum(counts[:num_read]), longest)
    read = f"{num_read:,} of {len(words):,} words were" if len(words) > 1 else "its beginning was"
    warning = HeadlineWarning("cut", f"only {read} read")
    return SourceText(text, words[:num_read], tuple(ids[:size]), tuple(word_ids[:size]), (warning,))


def _is_known(id_: int, tokenizer: Tokenizer) -> bool:
    """Whether a sub-word is known and more than a joiner mark."""
    return id_ != UNK and any(text.strip(JOINER) for text in tokenizer.decode_words([id_]))


def _listed(words: Iterable[str]) -> str:
    names = list(dict.fromkeys(words))
    shown = ", ".join(repr(name) for name in names[:_SHOWN])
    more = len(names) - _SHOWN
    return f"{shown} and {more:,} more words" if more > 0 else shown
