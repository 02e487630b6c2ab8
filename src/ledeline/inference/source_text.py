"""A text as a model reads it: words, sub-words, and what a reader of its headline should know."""

from collections.abc import Iterable
from itertools import chain, repeat
from typing import NamedTuple

from ledeline.inference.headline import HeadlineWarning
from ledeline.text.profiles import JOINER
from ledeline.text.subwords import UNK
from ledeline.text.tokenizer import Tokenizer

_SHOWN = 5  # words that a warning names at most


class SourceText(NamedTuple):
    """What there is to write a headline from; without ids, there is nothing."""

    text: str | None  # as given, without a line end; None where that was no text
    words: tuple[str, ...] = ()  # in the profile, as far as the model reads
    ids: tuple[int, ...] = ()
    owners: tuple[int, ...] = ()  # of each id the number of its word
    cautions: tuple[HeadlineWarning, ...] = ()

    @property
    def unknown(self) -> list[int]:
        """The numbers of the words that the model does not know in full."""
        if UNK not in self.ids:
            return []
        return sorted({word for word, id_ in zip(self.owners, self.ids, strict=True) if id_ == UNK})

    def ids_of(self, word: int) -> tuple[int, ...]:
        """The ids of a word by its number."""
        return tuple(id_ for own, id_ in zip(self.owners, self.ids, strict=True) if own == word)


def read_source_text(given: object, number: int, tokenizer: Tokenizer, longest: int) -> SourceText:
    """Whatever was given as text `number` -> what a model reads, at most `longest` sub-words.

    Never fails: what is no text, empty, or unknown to the last character has no ids.
    """
    text = _text(given, number)
    if isinstance(text, HeadlineWarning):
        return SourceText(given if isinstance(given, str) else None, cautions=(text,))
    lede = _cut(text, tuple(tokenizer.words(text)), tokenizer, longest)
    if not lede.words:
        return lede._replace(cautions=(HeadlineWarning("empty", f"text {number} has no words"),))
    if not any(_is_known(id_, tokenizer) for id_ in set(lede.ids)):
        caution = HeadlineWarning("unseen", f"the model knows no character of text {number}")
        return SourceText(text, cautions=(caution,))
    if lede.unknown:
        words = tokenizer.plain([lede.words[word] for word in lede.unknown])
        caution = HeadlineWarning("unseen", f"the model does not know {_listed(words)} in full")
        return lede._replace(cautions=(*lede.cautions, caution))
    return lede


def _text(given: object, number: int) -> str | HeadlineWarning:
    """The text without a line end, or why there is none."""
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
    try:  # two halves of a character make one; a half alone comes from bytes that are no text
        whole = given.encode("utf-16-le", "surrogatepass").decode("utf-16-le")
    except UnicodeDecodeError:
        return HeadlineWarning("invalid", f"text {number} is not UTF-8: it has half a character")
    return whole.rstrip("\r\n")


def _cut(text: str, words: tuple[str, ...], tokenizer: Tokenizer, longest: int) -> SourceText:
    """As many whole words as fit; of a first word that is too long, its beginning."""
    ids, counts = tokenizer.encode_words(words[: longest + 1])  # each has one id at least
    owners = list(chain.from_iterable(map(repeat, range(len(counts)), counts)))
    if len(ids) <= longest:
        return SourceText(text, words, tuple(ids), tuple(owners))
    num_read = owners[longest] or 1
    size = min(sum(counts[:num_read]), longest)
    caution = HeadlineWarning("cut", f"only {num_read:,} of {len(words):,} words were read")
    return SourceText(text, words[:num_read], tuple(ids[:size]), tuple(owners[:size]), (caution,))


def _is_known(id_: int, tokenizer: Tokenizer) -> bool:
    """Whether a sub-word says anything of the text: more than that two words touch."""
    return id_ != UNK and any(text.strip(JOINER) for text in tokenizer.decode_words([id_]))


def _listed(words: Iterable[str]) -> str:
    names = list(dict.fromkeys(words))
    shown = ", ".join(repr(name) for name in names[:_SHOWN])
    more = len(names) - _SHOWN
    return f"{shown} and {more:,} more words" if more > 0 else shown
