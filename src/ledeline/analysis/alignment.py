"""Which source word became which headline word: links from models, between words, and their score.

A link (i, j) joins place i of the source and place j of the headline, both from 0. Models link
sub-words; `owners` and `to_words` lead from there to white-space words, which people align.

Legend: I source length, J headline length, V vocabulary.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, get_args

import numpy as np
import numpy.typing as npt

from ledeline.errors import CorpusError
from ledeline.subword import Subwords
from ledeline.text import Profile, clean

Links: TypeAlias = frozenset[tuple[int, int]]
Rule: TypeAlias = Literal["vocabulary", "sentence"]

_Floats: TypeAlias = npt.NDArray[np.floating[Any]]
_Ids: TypeAlias = npt.NDArray[np.int64]

# --- links as text ----------------------------------------------------------------------------

_LINK = re.compile(r"([0-9]{1,9})-([0-9]{1,9})")


def parse(pharaoh: str) -> Links:
    """Read links in the Pharaoh form, such as ``0-1 2-3``."""
    return frozenset(map(_parse_link, pharaoh.split()))


def _parse_link(item: str) -> tuple[int, int]:
    match = _LINK.fullmatch(item)
    if match is None:
        raise CorpusError(
            f"{item!r} is no link of an alignment; write source and headline place, from 0, as 2-3"
        )
    return int(match[1]), int(match[2])


def pharaoh(links: Iterable[tuple[int, int]]) -> str:
    """Write links in the Pharaoh form, sorted by source place, then by headline place."""
    return " ".join(f"{i}-{j}" for i, j in sorted(links))


# --- sub-words -> words -----------------------------------------------------------------------

# A word that each profile keeps whole. Behind a chunk it stands for the rest of a sentence: the
# chunk does not end the sentence, and its capital says that nobody has tokenised this.
_NEXT_WORD = "Q"


def owners(text: str, profile: Profile, subwords: Subwords, *, headline: bool = False) -> list[int]:
    """For each sub-word of a text the number of the white-space word it belongs to.

    White-space words are those of the cleaned text; sub-words those of the text's words in the
    profile, or with `headline` of the words that the profile keeps in headlines.
    """
    words = profile.words(text)
    numbers: list[int] = []
    for word, number in zip(words, _word_owners(text, len(words), profile), strict=True):
        for kept in profile.headline([word]) if headline else [word]:
            numbers += [number] * len(subwords.encode_word(kept))
    return numbers


def _word_owners(text: str, num_words: int, profile: Profile) -> list[int]:
    """For each word of the profile the number of its chunk between spaces.

    A chunk makes one word or more, whatever stands around it, with two exceptions. Tokenised text
    stays as it is: as many words as chunks, one each. The end of a sentence may add a period: the
    last chunk gets all that is left.
    """
    chunks = clean(text).split()
    if num_words == len(chunks):
        return list(range(num_words))
    numbers: list[int] = []
    for number, chunk in enumerate(chunks[:-1]):
        numbers += [number] * (len(profile.words(f"{chunk} {_NEXT_WORD}")) - 1)
    return numbers + [len(chunks) - 1] * (num_words - len(numbers))


def to_words(
    links: Iterable[tuple[int, int]], source_owners: Sequence[int], headline_owners: Sequence[int]
) -> Links:
    """Links of sub-words -> links of the words that own them."""
    return frozenset((source_owners[i], headline_owners[j]) for i, j in links)


# --- links from models ------------------------------------------------------------------------


def spm_links(q: _Floats, source: Sequence[int], *, rule: Rule, attention: _Floats) -> Links:
    """Link sub-words by what the SPM predicts.

    Row j of `q`, (J, V), is the distribution over source types when headline sub-word j was written
    (<eos> has no row), row j of `attention`, (J, I), how much each source place was attended to.
    The rule "vocabulary" is the paper's: the likeliest of all types, and no link if the source does
    not have it. The rule "sentence" takes the likeliest of the types that the source has. Where a
    type is in the source several times, of which `q` says nothing, the place with the most
    attention is linked.
    """
    if rule not in get_args(Rule):
        raise ValueError(f"there is no rule {rule!r} to read the SPM by")
    if attention.shape != (len(q), len(source)):
        raise ValueError(f"attention is {attention.shape} for {len(q)} rows of {len(source)} ids")
    if not len(source):
        return frozenset()
    ids = np.asarray(source, np.int64)
    types = q.argmax(1) if rule == "vocabulary" else ids[q[:, ids].argmax(1)]
    has_type = types[:, None] == ids  # (J, 1), (I,) -> (J, I)
    places = np.where(has_type, attention, -1).argmax(1)
    rows = np.flatnonzero(has_type.any(1))
    return _links(places[rows], rows)


def attention_links(attention: _Floats, num_headline: int, shift: int = 0) -> Links:
    """Link headline sub-word j to the place most attended to, `shift` steps after it was written.

    `attention`, (J or more, I), has a row for each step, the one that writes <eos> behind those of
    the headline, so that a shift of 1 can be read for all of it.
    """
    rows = attention[shift : shift + num_headline] if shift >= 0 else attention[:0]
    if len(rows) != num_headline:
        raise ValueError(
            f"{len(attention)} rows of attention for {num_headline} sub-words shifted by {shift}"
        )
    return _links(rows.argmax(1), np.arange(num_headline)) if rows.size else frozenset()


def identity_links(num_source: int, num_headline: int) -> Links:
    """Link each place of the headline to the same place of the source, as far as it goes."""
    return frozenset((j, j) for j in range(min(num_source, num_headline)))


def diagonal_links(num_source: int, num_headline: int) -> Links:
    """Link each place of the headline to the place as far along in the source, centre to centre."""
    places = ((2 * j + 1) * num_source // (2 * num_headline) for j in range(num_headline))
    return frozenset((i, j) for j, i in enumerate(places) if num_source)


def _links(i: _Ids, j: _Ids) -> Links:
    return frozenset(zip(i.tolist(), j.tolist(), strict=True))


# --- score ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class AlignmentScore:
    """Predicted links against gold links, all of them sure, over all pairs together."""

    precision: float
    recall: float
    error_rate: float  # AER: 1 - 2 |A and S| / (|A| + |S|)
    num_predicted: int
    num_gold: int


def alignment_score(predicted: Iterable[Links], gold: Iterable[Links]) -> AlignmentScore:
    """Score the links of some pairs, given in the same order.

    Without any link on either side all is right: precision and recall 1, error rate 0. If only one
    side has none, precision and recall are 0 and the error rate is 1.
    """
    num_hits = num_predicted = num_gold = 0
    for ours, theirs in zip(predicted, gold, strict=True):
        num_hits += len(ours & theirs)
        num_predicted += len(ours)
        num_gold += len(theirs)
    if not num_predicted + num_gold:
        return AlignmentScore(1.0, 1.0, 0.0, 0, 0)
    return AlignmentScore(
        precision=num_hits / num_predicted if num_predicted else 0.0,
        recall=num_hits / num_gold if num_gold else 0.0,
        error_rate=1 - 2 * num_hits / (num_predicted + num_gold),
        num_predicted=num_predicted,
        num_gold=num_gold,
    )
