"""Text profiles: how raw text becomes words and words become text again.

Every text is first normalised by `clean`, exactly once. Then there are two profiles:

- `PAPER`: the tokens of the paper's data. Penn Treebank tokenisation, lower case, every digit a
  ``#``; headlines lose their punctuation. Text that is tokenised already (Gigaword) stays as it is.
- `NATURAL`: cased text with digits and punctuation. Typographic marks become those of a keyboard
  (’ is ', — is a hyphen between spaces); joining the words gives that text back exactly. A word
  that touches its neighbour carries the mark ``￭`` on that side.
"""

import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from functools import cache, lru_cache
from itertools import chain
from typing import Final, Protocol

from ledeline.core.cache import BoundedCache
from ledeline.core.patterns import lazy_pattern

JOINER: Final = "\uffed"  # ￭; `clean` keeps it out of text, so it can only be our mark
_MAX_CACHED_CHUNKS: Final = 2**19  # covers nearly all of a corpus in some 150 MB

# --- normalisation ----------------------------------------------------------------------------

# Control characters that are not white space.
_CONTROL = "\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f"
# Unicode's default-ignorable code points: zero-width characters, direction marks, soft hyphens,
# variation selectors, tags. Listed, so that the answer does not vary with Python's Unicode version.
_IGNORABLE = (
    "\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e"
    "\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\U0001bca0-\U0001bca3"
    "\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
)
_INVISIBLE = lazy_pattern(f"[{_CONTROL}{_IGNORABLE}]")
_SURROGATE = lazy_pattern("[\ud800-\udfff]")


def clean(text: str) -> str:
    """Normalise text.

    In this order: surrogate pairs are joined and lone surrogates become U+FFFD; control characters
    and zero-width (default-ignorable) characters are removed; the rest is put in Unicode form NFC;
    U+FFED, our joiner mark, becomes U+25A0, which looks alike; each run of white space becomes one
    space, with none at the ends. Cleaning a clean text changes nothing.
    """
    if text.isascii() and text.isprintable():
        return " ".join(text.split())  # the rest changes nothing
    if _SURROGATE.search(text):
        text = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    text = _INVISIBLE.sub("", text)
    if not text.isascii():
        text = unicodedata.normalize("NFC", text).replace(JOINER, "\u25a0")
    return " ".join(text.split())


# --- typographic marks ------------------------------------------------------------------------

# What both profiles make of them.
_ALIKE: Final = {
    "’": "'", "›": "'", "′": "'", "ʼ": "'", "…": "...", "⁄": "/",
    "‐": "-", "‑": "-", "‒": "-", "−": "-",
}  # fmt: skip
# As a keyboard has them: what the profile `natural` makes of those that a model does not know.
TYPOGRAPHIC: Final[Mapping[str, str]] = _ALIKE | {
    "‘": "'", "‚": "'", "‛": "'", "‹": "'", "ʻ": "'", "´": "'",
    "“": '"', "”": '"', "„": '"', "‟": '"', "«": '"', "»": '"', "″": '"',
    "–": "-", "—": " - ", "―": " - ", "․": ".", "‥": "..",
}  # fmt: skip

# --- profiles ---------------------------------------------------------------------------------


class Profile(Protocol):
    """How text becomes words, and words become text."""

    @property
    def name(self) -> str:
        """Its name in configurations and datasets."""

    @property
    def unknown_words(self) -> tuple[str, ...]:
        """Words of the text that stand for an unknown word, such as UNK."""

    def keeping_marks(self, characters: Iterable[str]) -> "Profile":
        """The same profile, but typographic marks among these characters stay as they are.

        Profiles that do the same are the same object.
        """

    def words(self, text: str) -> list[str]:
        """Raw text -> words; the text is cleaned here, and nowhere else."""

    def target_words(self, words: Sequence[str]) -> list[str]:
        """Words of a headline -> the words a model learns to write."""

    def plain(self, words: Sequence[str]) -> Sequence[str]:
        """Words -> the same without joiner marks."""

    def compared_words(self, words: Sequence[str]) -> list[str]:
        """Words, with or without marks -> those that are compared in scores, without marks."""

    def spaced(self, words: Iterable[str]) -> list[str]:
        """Words -> the same without joiner marks, each with the space that precedes it in text."""

    def join(self, words: Iterable[str]) -> str:
        """Words -> text."""


class _Paper:
    name: Final = "paper"
    unknown_words: Final = ("<unk>", "UNK")  # as NAMAS writes it, and as in Rush's test set

    def keeping_marks(self, characters: Iterable[str]) -> Profile:  # noqa: ARG002
        """Itself: the tokens of the paper have no typographic marks."""
        return self

    def words(self, text: str) -> list[str]:
        """Treebank tokens in lower case with ``#`` for digits; tokenised text is left alone."""
        text = _DIGIT.sub("#", clean(text))
        chunks = text.split()
        if text.replace("UNK", "unk") == text.lower() and _is_tokenised(chunks):
            return chunks
        words = list(chain.from_iterable(map(_TREEBANK_WORDS.__getitem__, chunks)))
        if words and words[-1] == "no.":
            words[-1:] = ["no", "."]  # a number would have followed
        elif words and _is_abbreviation(words[-1]):
            words.append(".")  # the period of an abbreviation ends the sentence too
        return words

    def target_words(self, words: Sequence[str]) -> list[str]:
        """Drop the punctuation that NAMAS drops from headlines."""
        return [word for word in words if word not in HEADLINE_PUNCTUATION]

    def plain(self, words: Sequence[str]) -> Sequence[str]:
        """Tokens carry no marks."""
        return words

    def compared_words(self, words: Sequence[str]) -> list[str]:
        """The tokens of a headline."""
        return self.target_words(words)

    def spaced(self, words: Iterable[str]) -> list[str]:
        """Tokens with a space before each but the first."""
        return [f" {word}" if number else word for number, word in enumerate(words)]

    def join(self, words: Iterable[str]) -> str:
        """Tokens with a space between."""
        return "".join(self.spaced(words))


class _Natural:
    name: Final = "natural"
    unknown_words: Final = ()

    def __init__(self, kept: frozenset[str]) -> None:
        self._kept = kept
        folded = {mark: typed for mark, typed in TYPOGRAPHIC.items() if mark not in kept}
        self._folded = str.maketrans(folded)

    def keeping_marks(self, characters: Iterable[str]) -> Profile:
        """The same, but these typographic marks stay as they are."""
        return _natural(self._kept | TYPOGRAPHIC.keys() & set(characters))

    def words(self, text: str) -> list[str]:
        """Words, numbers and punctuation marks, each with the joiner where it touched."""
        text = clean(text)
        if not text.isascii():
            text = text.translate(self._folded)
        return list(chain.from_iterable(map(_NATURAL_WORDS.__getitem__, text.split())))

    def target_words(self, words: Sequence[str]) -> list[str]:
        """Keep every word."""
        return list(words)

    def plain(self, words: Sequence[str]) -> Sequence[str]:
        """Words without joiners."""
        return [word.strip(JOINER) for word in words]

    def compared_words(self, words: Sequence[str]) -> list[str]:
        """Words with a letter or a digit."""
        return [word for word in self.plain(words) if any(map(str.isalnum, word))]

    def spaced(self, words: Iterable[str]) -> list[str]:
        """A space between two words unless one of them carries the joiner there."""
        spaced: list[str] = []
        glued = True
        for word in words:
            space = "" if glued or word.startswith(JOINER) else " "
            spaced.append(space + word.strip(JOINER))
            glued = word.endswith(JOINER)
        return spaced

    def join(self, words: Iterable[str]) -> str:
        """Undo `words`, but for typographic marks that were folded."""
        return "".join(self.spaced(words))


@cache
def _natural(kept: frozenset[str]) -> Profile:
    return _Natural(kept)


PAPER: Final[Profile] = _Paper()
NATURAL: Final[Profile] = _natural(frozenset())
PROFILES: Final = {profile.name: profile for profile in (PAPER, NATURAL)}

# --- the paper profile: Penn Treebank tokens -----------------------------------------------------

# What NAMAS removes from headlines (`-llb-` is its slip for `-lrb-`, which therefore survives).
HEADLINE_PUNCTUATION: Final = frozenset(
    ['"', "'", "''", "!", "=", "-", "--", ",", "?", ".", "``", "`", "-rrb-", "-llb-", "\\/"]
)

_DIGIT = lazy_pattern(r"\d")

# Typographic punctuation as the Treebank writes it.
_FOLDED = str.maketrans(
    _ALIKE
    | {
        "“": "``", "„": "``", "«": "``", "”": "''", "»": "''", "″": "''",
        "‘": "`", "‚": "`", "‹": "`", "—": "--", "―": "--",
    }
)  # fmt: skip
_BRACKETS = str.maketrans(
    {
        "(": " -lrb- ", ")": " -rrb- ", "[": " -lsb- ", "]": " -rsb- ",
        "{": " -lcb- ", "}": " -rcb- ",
    }
)  # fmt: skip

# Words that keep their period inside a sentence.
_ABBREVIATIONS: Final = frozenset(
    """
    adm. al. assn. assoc. ave. aug. bhd. blvd. bros. calif. capt. cie. cmdr. co. col. comdr.
    conn. corp. cos. cpl. ct. dec. dept. det. dr. est. et. etc. ext. feb. fla. fri. ft. ga.
    gen. gov. hon. ill. inc. ind. insp. intl. jan. jr. jul. jun. kan. ky. la. lb. lt. ltd.
    maj. mar. mass. md. messrs. mfg. mgr. mich. minn. miss. mo. mon. mont. mr. mrs. ms.
    msgr. mt. nat. natl. neb. nev. no. nos. nov. oct. okla. ore. pa. penn. pfc. ph.d. plc.
    pres. prof. pty. pvt. rep. reps. ret. rev. rte. sat. sen. sens. sept. sep. sgt. sr. st.
    ste. supt. tenn. tex. thu. thurs. tue. tues. univ. va. vs. vt. wash. wed. wis. wyo.
    """.split()
)
_DOTTED = lazy_pattern(r"(?:[^\W\d_]{1,2}\.)*[^\W\d_]\.")  # u.s. a.m. j. ph.d.

# A chunk of raw text is spread into words by these, in turn: pattern -> replacement.
_TREEBANK: Final = tuple(
    (lazy_pattern(pattern), replacement)
    for pattern, replacement in (
        (r"(?<!\\)/", r"\\/"),
        (r"–(?=#)(?<=#–)", "-"),  # 10–12
        (r"–", "--"),
        (r"``|''", r" \g<0> "),
        (r'(?:^|(?<=[ (\[{<-]))"(?=.)', " `` "),
        (r'(?<=.)"', " '' "),
        (r"\.{2,}|-{2,}|[?!]", r" \g<0> "),
        (r"[,:](?!#)", r" \g<0> "),
        (r"(?<!&amp)(?<!&lt)(?<!&gt)(?<!&quot)(?<!&apos);", " ; "),
        (r"(?:(?<=#)|(?<=[a-z]))%", " %"),
        (r"(?:(?<=[a-z])|(?<![^ ]))[$£€¥₹](?=[#.])", r"\g<0> "),
        (r"(?<=[^ a-z])[$£€¥₹](?=[#.])", r" \g<0> "),
    )
)
_CONTRACTIONS: Final = tuple(
    (lazy_pattern(pattern), replacement)
    for pattern, replacement in (
        (r"(?<=[^ ])(n't|'(?:s|re|ve|ll|d|m))(?= |$)", r" \1"),
        (r"(?<=[^ '])'(?= |$)", " '"),
        (r"(?:^|(?<= ))'(?=[a-z#])(?!(?:s|re|ve|ll|d|m|em|n|til|cause|#+s?)(?: |$))", "` "),
        (r"(?:^|(?<= ))`(?=[^ `])", "` "),
    )
)
_PLAIN = lazy_pattern(r"[a-z#]+(?:-[a-z#]+)*\.?")  # most chunks: none of the above applies
_ELISIONS: Final = frozenset(["'n'", "ol'", "d'", "l'", "o'"])  # rock 'n' roll, good ol' days
_CLOSERS: Final = frozenset(["''", "'", "-rrb-", "-rsb-", "-rcb-"])


def _lower(text: str) -> str:
    """Lower case; of a few letters it is not in form NFC."""
    return unicodedata.normalize("NFC", text.lower())


def _split_chunk(chunk: str) -> list[str]:
    """A chunk between spaces -> its tokens, but for periods."""
    if _PLAIN.fullmatch(chunk) or chunk in _ELISIONS:
        return [chunk]
    if chunk.endswith(",") and _PLAIN.fullmatch(chunk, 0, len(chunk) - 1):
        return [chunk[:-1], ","]
    chunk = chunk.translate(_FOLDED)
    for pattern, replacement in _TREEBANK:
        chunk = pattern.sub(replacement, chunk)
    chunk = chunk.translate(_BRACKETS)
    for pattern, replacement in _CONTRACTIONS:
        chunk = pattern.sub(replacement, chunk)
    return chunk.split()


def _split_until_stable(chunk: str) -> list[str]:
    """Apply `_split_chunk` until nothing changes, so that tokenised text stays as it is."""
    words = _split_chunk(chunk)
    while (again := list(chain.from_iterable(map(_split_chunk, words)))) != words:
        words = again
    return words


def _is_abbreviation(word: str) -> bool:
    return word in _ABBREVIATIONS or _DOTTED.fullmatch(word) is not None


def _split_period(words: list[str]) -> list[str]:
    """Split the period off the last word, closing quotes and brackets aside."""
    last = len(words) - 1
    while last > 0 and words[last] in _CLOSERS:
        last -= 1
    word = words[last]
    if len(word) > 1 and word.endswith(".") and word[-2] != "." and not _is_abbreviation(word):
        return [*words[:last], *_split_until_stable(word[:-1]), ".", *words[last + 1 :]]
    return words


def _treebank_words(chunk: str) -> tuple[str, ...]:
    """A chunk of raw text -> tokens."""
    return tuple(_split_period(_split_until_stable(_lower(chunk)))) if chunk != "UNK" else (chunk,)


_TREEBANK_WORDS: Final = BoundedCache(_treebank_words, _MAX_CACHED_CHUNKS)


@lru_cache(2**16)
def _is_token(chunk: str) -> bool:
    return chunk == "UNK" or [chunk] == _split_until_stable(_lower(chunk))


def _is_tokenised(chunks: Sequence[str]) -> bool:
    """Whether lower-case chunks are Treebank tokens already.

    If so, their periods stay as they are, and rare abbreviations survive. A plain word with a
    period at the very end shows that the text was not tokenised.
    """
    return all(map(_is_token, chunks)) and (
        not chunks or _split_period([chunks[-1]]) == [chunks[-1]]
    )


# --- the natural profile -------------------------------------------------------------------------

# Punctuation, currency signs, symbols and emoji: each is a word of its own.
_MARKS = (
    r"!-/:-@\[-`{-~\u00a1-\u00a9\u00ab-\u00b4\u00b6-\u00b9\u00bb-\u00bf\u00d7\u00f7"
    r"\u2010-\u205e\u20a0-\u20cf\u2100-\u2bff\u3000-\u3020\uff01-\uff0f\uff1a-\uff20\ufffd"
    r"\U0001f000-\U0001faff"
)
_SUFFIX = rf"(?:s|re|ve|ll|d|m|S|RE|VE|LL|D|M)(?![^{_MARKS}])"
_PIECE = lazy_pattern(
    rf"(?:[^\W\d_]\.){{2,}}"  # U.S.
    rf"|\d+(?:[.,:]\d+)+"  # 1,234.5
    rf"|['’]{_SUFFIX}"  # the end of Japan's
    rf"|[^{_MARKS}]+(?:['’](?!{_SUFFIX})[^{_MARKS}]+)*"  # don't, O'Neill
    rf"|."
)
_IS_WORD = lazy_pattern(rf"[^{_MARKS}]")


def _natural_words(chunk: str) -> tuple[str, ...]:
    """A chunk between spaces -> pieces, joiners on punctuation wherever two pieces touch."""
    words = _PIECE.findall(chunk)
    for i in range(len(words) - 1):
        if _IS_WORD.match(words[i + 1]) and not _IS_WORD.match(words[i].lstrip(JOINER)):
            words[i] += JOINER
        else:
            words[i + 1] = JOINER + words[i + 1]
    return tuple(words)


_NATURAL_WORDS: Final = BoundedCache(_natural_words, _MAX_CACHED_CHUNKS)
