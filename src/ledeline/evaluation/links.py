"""Links between source and headline words: from text, from models, and scored against gold links.

A link (i, j) joins place i of the source and place j of the headline, both from 0. Models link
sub-words; people align white-space words. `to_words` leads from the first to the second.

Legend: I source length, J headline length, V vocabulary.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal, NamedTuple, Self, TypeAlias, TypeVar, get_args

import numpy as np
import numpy.typing as npt

from ledeline.core.errors import CorpusError
from ledeline.corpus.evaluation_sets import EvaluationSet
from ledeline.text.profiles import Profile, clean
from ledeline.text.tokenizer import Tokenizer

Links: TypeAlias = frozenset[tuple[int, int]]
SpmRule: TypeAlias = Literal["vocabulary", "sentence"]

_Floats: TypeAlias = npt.NDArray[np.floating[Any]]
_Ids: TypeAlias = npt.NDArray[np.int64]
_T = TypeVar("_T")

# --- links as text ----------------------------------------------------------------------------

_LINK = re.compile(r"([0-9]{1,9})-([0-9]{1,9})")


def parse_pharaoh(text: str) -> Links:
    """Read links in the Pharaoh form, such as ``0-1 2-3``."""
    return frozenset(map(_parse_link, text.split()))


def _parse_link(item: str) -> tuple[int, int]:
    match = _LINK.fullmatch(item)
    if match is None:
        raise CorpusError(
            f"{item!r} is not a link; write the positions in source and headline, from 0, as 2-3"
        )
    return int(match[1]), int(match[2])


def format_pharaoh(links: Iterable[tuple[int, int]]) -> str:
    """Write links in the Pharaoh form, sorted by source place, then by headline place."""
    return " ".join(f"{i}-{j}" for i, j in sorted(links))


def gold_links(test_set: EvaluationSet) -> list[Links] | None:
    """The gold links of a test set, where it has any."""
    if test_set.alignments is None:
        return None
    return read_gold_links(test_set.alignments, test_set.gold_file, test_set.pairs)


def read_gold_links(
    lines: Iterable[str], source: str, pairs: Iterable[tuple[str, str]] | None = None
) -> list[Links]:
    """Read links in the Pharaoh form, a line for each pair, from a source that errors name.

    With the pairs of lede and headline there must be as many lines as pairs, and every link must
    join a word of the lede and a word of the headline.
    """
    gold = [_parse_line(line, f"{source}, line {number}") for number, line in _numbered(lines)]
    if pairs is None:
        return gold
    sizes = [(num_words(lede), num_words(headline)) for lede, headline in pairs]
    if len(gold) != len(sizes):
        raise CorpusError(
            f"{source} has {len(gold):,} lines of links for {len(sizes):,} pairs; it needs one "
            "for each pair, empty if it has no links"
        )
    for (number, links), size in zip(_numbered(gold), sizes, strict=True):
        _check_inside(links, size, f"{source}, line {number}")
    return gold


def _numbered(items: Iterable[_T]) -> Iterator[tuple[int, _T]]:
    return enumerate(items, start=1)


def _parse_line(line: str, where: str) -> Links:
    try:
        return parse_pharaoh(line)
    except CorpusError as error:
        raise CorpusError(f"{where}: {error}") from None


def _check_inside(links: Links, size: tuple[int, int], where: str) -> None:
    for i, j in sorted(links):
        if i >= size[0] or j >= size[1]:
            raise CorpusError(
                f"{where}: the link {i}-{j} is outside the pair, which has {size[0]} words in "
                f"the lede and {size[1]} in the headline, counted from 0"
            )


# --- sub-words -> words -----------------------------------------------------------------------


def num_words(text: str) -> int:
    """How many white-space words a text has."""
    return len(clean(text).split())


# A word that each profile keeps whole. It is put behind a chunk in place of the rest of the text:
# the chunk then does not end a sentence, and the capital says that the text is not tokenised.
_NEXT_WORD = "Q"


def whitespace_word_ids(text: str, tokenizer: Tokenizer, *, headline: bool = False) -> list[int]:
    """For each sub-word of a text the number of the white-space word it belongs to.

    White-space words are those of the cleaned text; sub-words those of the text's words in the
    profile, or with `headline` of the words that the profile keeps in headlines.
    """
    profile = tokenizer.profile
    words = profile.words(text)
    numbers: list[int] = []
    for word, number in zip(words, _chunk_ids(text, len(words), profile), strict=True):
        for kept in profile.target_words([word]) if headline else [word]:
            numbers += [number] * len(tokenizer.encode_word(kept))
    return numbers


def _chunk_ids(text: str, num_words: int, profile: Profile) -> list[int]:
    """For each word of the profile the number of its chunk between spaces.

    A chunk becomes one word or more, whatever is around it, with two exceptions. Tokenised text
    stays as it is: as many words as chunks, one each. The end of a sentence may add a period: the
    last chunk gets all words that are left.
    """
    chunks = clean(text).split()
    if num_words == len(chunks):
        return list(range(num_words))
    numbers: list[int] = []
    for number, chunk in enumerate(chunks[:-1]):
        numbers += [number] * (len(profile.words(f"{chunk} {_NEXT_WORD}")) - 1)
    return numbers + [len(chunks) - 1] * (num_words - len(numbers))


def to_words(
    links: Iterable[tuple[int, int]], source_words: Sequence[int], headline_words: Sequence[int]
) -> Links:
    """Links of sub-words -> links of their words, given the `whitespace_word_ids` of both sides."""
    return frozenset((source_words[i], headline_words[j]) for i, j in links)


# --- links from models ------------------------------------------------------------------------


def spm_links(q: _Floats, source: Sequence[int], *, rule: SpmRule, attention: _Floats) -> Links:
    """Link sub-words by what the SPM predicts.

    Row j of `q`, (J, V), is the distribution over source types when headline sub-word j was written
    (<eos> has no row), row j of `attention`, (J, I), how much each source place was attended to.
    The rule "vocabulary" is the paper's: the likeliest of all types, and no link if the source does
    not have it. The rule "sentence" takes the likeliest of the types that the source has. Where a
    type is in the source several times, of which `q` says nothing, the place with the most
    attention is linked.
    """
    if rule not in get_args(SpmRule):
        raise ValueError(f"no rule of the SPM: {rule!r}")
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


def pad_places(
    q: _Floats, source: Sequence[int], num_headline: int, *, attention: _Floats
) -> frozenset[int]:
    """Places of the source that the SPM predicts at the steps of <pad>, which follow <eos>.

    The paper reads them as the words that the headline drops. `q`, (I, V), and `attention`, (I, I),
    have a row for each step of Y'; the likeliest type counts, as in the rule "vocabulary".
    """
    q, attention = q[num_headline + 1 :], attention[num_headline + 1 :]
    found = spm_links(q, source, rule="vocabulary", attention=attention)
    return frozenset(i for i, _ in found)


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
    """Predicted links against gold links, all of them sure, over all pairs together.

    A source word without a gold link was dropped. It is found as dropped if it has no predicted
    link or, by <pad>, if the SPM predicts one of its sub-words behind <eos>.
    """

    precision: float
    recall: float
    error_rate: float  # AER: 1 - 2 |A and S| / (|A| + |S|)
    num_predicted: int | None = None  # links; None in a score from a file that does not say
    num_gold: int | None = None
    num_dropped: int | None = None  # by gold; None where the numbers of words are not known
    dropped_precision: float | None = None
    dropped_recall: float | None = None
    pad_precision: float | None = None  # None where nothing is known of <pad>
    pad_recall: float | None = None

    def as_dict(self) -> dict[str, float | None]:
        """For JSON: all figures by name."""
        return asdict(self)


def alignment_score(
    predicted: Iterable[Links],
    gold: Iterable[Links],
    num_source_words: Iterable[int] | None = None,
    left_to_pad: Iterable[frozenset[int]] | None = None,
) -> AlignmentScore:
    """Score the predicted links of pairs against their gold links, in the same order.

    With the number of source words of each pair, dropped words are scored too; with the source
    words that the SPM left to <pad>, also those. If neither side has a link, precision and recall
    are 1 and the error rate is 0. If only one side has any, precision and recall are 0 and the
    error rate is 1.
    """
    predicted, gold = list(predicted), list(gold)
    links = overlap_counts(zip(predicted, gold, strict=True))
    score = links.score
    if num_source_words is None:
        return score
    sizes = list(num_source_words)
    dropped = [_unlinked(links, size) for links, size in zip(gold, sizes, strict=True)]
    found = [_unlinked(links, size) for links, size in zip(predicted, sizes, strict=True)]
    words = overlap_counts(zip(found, dropped, strict=True))
    score = replace(
        score,
        num_dropped=words.num_wanted,
        dropped_precision=words.precision,
        dropped_recall=words.recall,
    )
    if left_to_pad is None:
        return score
    words = overlap_counts(zip(left_to_pad, dropped, strict=True))
    return replace(score, pad_precision=words.precision, pad_recall=words.recall)


def score_methods(
    found: Mapping[str, Sequence[Links]],
    gold: Sequence[Links],
    num_source: Sequence[int] | None = None,
    left_to_pad: Sequence[frozenset[int]] | None = None,
) -> dict[str, AlignmentScore]:
    """Score the links of each method; only those of the SPM are scored by <pad> too."""
    return {
        method: alignment_score(
            links, gold, num_source, left_to_pad if method.startswith("spm") else None
        )
        for method, links in found.items()
    }


class OverlapCounts(NamedTuple):
    """How many items were found, how many were wanted, and how many are in both."""

    num_found: int = 0
    num_wanted: int = 0
    num_hits: int = 0

    @property
    def precision(self) -> float:
        """The share of what was found that was wanted."""
        return self.num_hits / self.num_found if self.num_found else float(not self.num_wanted)

    @property
    def recall(self) -> float:
        """The share of what was wanted that was found."""
        return self.num_hits / self.num_wanted if self.num_wanted else float(not self.num_found)

    @property
    def error_rate(self) -> float:
        """As that of an `AlignmentScore`."""
        both = self.num_found + self.num_wanted
        return 1 - 2 * self.num_hits / both if both else 0.0

    @property
    def score(self) -> AlignmentScore:
        """The score of links, without that of dropped words."""
        return AlignmentScore(
            self.precision, self.recall, self.error_rate, self.num_found, self.num_wanted
        )

    def plus(self, other: Self) -> Self:
        """Those of other pairs added."""
        return type(self)(*map(sum, zip(self, other, strict=True)))


def overlap_counts(pairs: Iterable[tuple[frozenset[Any], frozenset[Any]]]) -> OverlapCounts:
    """Count what was found and what was wanted, over all pairs together."""
    counts = [(len(found), len(wanted), len(found & wanted)) for found, wanted in pairs]
    return OverlapCounts(*map(sum, zip(*counts, strict=True))) if counts else OverlapCounts()


def _unlinked(links: Links, num_words: int) -> frozenset[int]:
    """The words of a source that no link leads to."""
    return frozenset(range(num_words)) - {i for i, _ in links}
