"""Which words a model takes for which: Table 4 of the paper (Appendix E).

The paper feeds 500 sampled pairs to the SPM and puts each headline token beside the likeliest
source token of its step. Sub-words make no sense there, so both must be whole words here; all
others are counted as left out.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias, TypeVar, get_args

import numpy as np

from ledeline.core.errors import ScoreError
from ledeline.core.progress import Progress, no_progress, track_progress
from ledeline.core.shuffle import permutation
from ledeline.evaluation.tracing import Reading, look
from ledeline.inference.attribution import PairTrace
from ledeline.model.format.folder import ModelBundle
from ledeline.rouge.stem import irregular_forms, porter
from ledeline.text.function_words import is_content
from ledeline.text.subwords import UNK
from ledeline.text.tokenizer import Tokenizer

Group: TypeAlias = Literal["same", "inflection", "other"]
Rule: TypeAlias = Literal["vocabulary", "sentence", "attention"]
Pair: TypeAlias = tuple[str, str]  # headline word, source word
T = TypeVar("T")

GROUPS: Final[tuple[Group, ...]] = get_args(Group)
STAGE: Final = "pair words"


@dataclass(frozen=True)
class WordPairs:
    """Words of headlines with the words they are aligned to, both in lower case."""

    counts: dict[Group, Counter[Pair]]
    num_pieces: int  # headline tokens left out: one side is a piece of a word, or unknown
    num_pairs: int  # ledes with their headlines

    @property
    def num_tokens(self) -> int:
        """Headline tokens, those left out included."""
        return self.num_pieces + sum(pairs.total() for pairs in self.counts.values())

    def examples(
        self, group: Group, limit: int, *, content_only: bool = False
    ) -> list[tuple[str, str, int]]:
        """The pairs of a group seen most often: headline word, source word, how often.

        With `content_only` pairs with a function word or a mark of punctuation are passed over.
        """
        kept = (
            (pair, number)
            for pair, number in self.counts[group].items()
            if not content_only or all(map(is_content, pair))
        )
        ranked = sorted(kept, key=lambda item: (-item[1], item[0]))
        return [(*pair, number) for pair, number in ranked[:limit]]

    def as_dict(self, limit: int = 20, *, content_only: bool = False) -> dict[str, Any]:
        """For JSON: the numbers, and the `limit` most frequent pairs of each group."""
        groups = {
            group: {
                "count": self.counts[group].total(),
                "examples": [
                    list(example)
                    for example in self.examples(group, limit, content_only=content_only)
                ],
            }
            for group in GROUPS
        }
        return {
            "pairs": self.num_pairs,
            "tokens": self.num_tokens,
            "pieces": self.num_pieces,
            "groups": groups,
        }

    def text(self, limit: int = 20, *, content_only: bool = False) -> str:
        """The same for people, a line for each group."""
        lines = [
            f"{self.num_pairs:,} pairs, {self.num_tokens:,} headline tokens, of which "
            f"{self.num_pieces:,} left out: no whole word on both sides"
        ]
        for group in GROUPS:
            examples = self.examples(group, limit, content_only=content_only)
            shown = ", ".join(f"({first}, {second}) {n:,}" for first, second, n in examples)
            lines.append(f"{group:<10} {self.counts[group].total():>7,}  {shown}".rstrip())
        return "\n".join(lines)


def sample(pairs: Sequence[T], number: int, seed: int) -> list[T]:
    """Some of the pairs, drawn by a seed, in their order; all if there are no more."""
    return [pairs[row] for row in sorted(permutation(seed, 0, len(pairs))[:number].tolist())]


def word_pairs(
    loaded: ModelBundle,
    pairs: Sequence[tuple[str, str]],
    rules: Sequence[Rule],
    progress: Progress = no_progress,
) -> dict[Rule, WordPairs]:
    """Pair each headline word of (lede, headline) with the source word it is aligned to.

    The rule "vocabulary" is the paper's: the likeliest of all types, be it in the lede or not.
    "sentence" takes the likeliest of the lede's types, "attention" the place most attended to. The
    model sees the pairs once, whatever the number of rules.
    """
    for rule in rules:
        _refuse_rule(rule, loaded)
    found: dict[Rule, Counter[Pair | None]] = {rule: Counter() for rule in rules}
    for reading, seen in track_progress(look(loaded, pairs), STAGE, len(pairs), progress):
        if seen is not None:
            for rule in rules:
                found[rule].update(_pairs(loaded, reading, seen, rule))
    return {rule: _grouped(found[rule], len(pairs)) for rule in rules}


def _refuse_rule(rule: str, loaded: ModelBundle) -> None:
    if rule not in get_args(Rule):
        raise ValueError(f"there is no rule {rule!r} to pair words by")
    if rule != "attention" and not loaded.model.has_source_predictions:
        raise ScoreError(f"the rule {rule} needs a system with SPM; this one has attention alone")


def _grouped(found: Counter[Pair | None], num_pairs: int) -> WordPairs:
    counts: dict[Group, Counter[Pair]] = {group: Counter() for group in GROUPS}
    for pair, number in found.items():
        if pair is not None:
            counts[group_of(*pair)][pair] = number
    return WordPairs(counts, found[None], num_pairs)


def group_of(headline_word: str, source_word: str) -> Group:
    """Compare two words, in whatever case.

    Words that share a form are inflections of one word. Forms are the word, its lemma where WordNet
    lists it as irregular (won, win), and the stems of both by Porter's rules. That takes in
    derivations (nation, national) and a few words that only look alike (universe, university), and
    misses what neither list nor rules lead together (die, dies).
    """
    first, second = headline_word.casefold(), source_word.casefold()
    if first == second:
        return "same"
    return "other" if _forms(first).isdisjoint(_forms(second)) else "inflection"


_SHORTEST_STEMMED: Final = 3  # letters, as Porter has it


def _forms(word: str) -> set[str]:
    lemma = irregular_forms().get(word, word)
    stems = {porter(one) for one in (word, lemma) if len(one) >= _SHORTEST_STEMMED}
    return {word, lemma} | stems


# --- one pair ---------------------------------------------------------------------------------


def _pairs(
    loaded: ModelBundle, reading: Reading, seen: PairTrace, rule: Rule
) -> Iterator[Pair | None]:
    """For each token of a headline its pair of words, or None where one is no whole word."""
    source = reading.lede.ids
    whole = {source[place] for place in _whole_places(source, reading.lede.owners)}
    places = _whole_places(reading.ids, reading.owners)
    for place, type_ in enumerate(_types(seen, source, len(reading.ids), rule)):
        is_word = type_ in whole or (type_ not in source and _is_word(type_, loaded.tokenizer))
        if place in places and is_word:
            yield _plain(loaded, reading.ids[place]), _plain(loaded, type_)
        else:
            yield None


def _types(seen: PairTrace, source: Sequence[int], num_headline: int, rule: Rule) -> list[int]:
    """The source type that each token of a headline is aligned to, (J,)."""
    ids = np.asarray(source, np.int64)
    types = ids[seen.attention[:num_headline].argmax(1)]
    if seen.q is not None and rule != "attention":
        q = seen.q[:num_headline]  # (J, V)
        types = q.argmax(1) if rule == "vocabulary" else ids[q[:, ids].argmax(1)]
    return list(types.tolist())


def _whole_places(ids: Sequence[int], owners: Sequence[int]) -> set[int]:
    """Places of the tokens that are a word of their own, and not unknown."""
    sizes = Counter(owners)
    return {place for place, id_ in enumerate(ids) if sizes[owners[place]] == 1 and id_ != UNK}


def _is_word(type_: int, tokenizer: Tokenizer) -> bool:
    """Whether a type that the source does not have could stand there as a word of its own."""
    words = tokenizer.decode_words([type_])
    return type_ != UNK and words != [] and tokenizer.encode_word(words[0]) == (type_,)


def _plain(loaded: ModelBundle, id_: int) -> str:
    (word,) = loaded.tokenizer.plain(loaded.tokenizer.decode_words([id_]))
    return word.lower()
