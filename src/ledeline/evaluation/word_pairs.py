"""Aligned word pairs: Table 4 of the paper (Appendix E).

The paper feeds 500 sampled pairs to the SPM and puts each headline token beside the likeliest
source token of its step. Here both must be whole words; tokens that are pieces of words are left
out, and counted.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias, TypeVar, get_args

import numpy as np

from ledeline.core.errors import ScoreError
from ledeline.core.progress import Progress, no_progress, track_progress
from ledeline.core.shuffle import permutation
from ledeline.evaluation.alignment_json import (
    WORD_GROUPS,
    WordGroup,
    WordPairGroup,
    WordPairTable,
)
from ledeline.evaluation.teacher_forcing import EncodedPair, trace_pairs
from ledeline.inference.traces import PairTrace
from ledeline.model.format.model_folder import ModelBundle
from ledeline.rouge.stem import irregular_forms, porter
from ledeline.text.function_words import is_content
from ledeline.text.subwords import UNK
from ledeline.text.tokenizer import Tokenizer

PairingRule: TypeAlias = Literal["vocabulary", "sentence", "attention"]
Pair: TypeAlias = tuple[str, str]  # headline word, source word
T = TypeVar("T")

STAGE: Final = "pair words"


@dataclass(frozen=True)
class WordPairs:
    """Words of headlines with the words they are aligned to, both in lower case."""

    counts: dict[WordGroup, Counter[Pair]]
    num_pieces: int  # headline tokens left out: one side is a piece of a word, or unknown
    num_pairs: int  # ledes with their headlines

    @property
    def num_tokens(self) -> int:
        """Headline tokens, those left out included."""
        return self.num_pieces + sum(pairs.total() for pairs in self.counts.values())

    def examples(
        self, group: WordGroup, limit: int, *, content_only: bool = False
    ) -> list[tuple[str, str, int]]:
        """The pairs of a group seen most often: headline word, source word, how often.

        With `content_only`, pairs with a function word or a punctuation mark are left out.
        """
        kept = (
            (pair, number)
            for pair, number in self.counts[group].items()
            if not content_only or all(map(is_content, pair))
        )
        ranked = sorted(kept, key=lambda item: (-item[1], item[0]))
        return [(*pair, number) for pair, number in ranked[:limit]]

    def table(self, limit: int = 20, *, content_only: bool = False) -> WordPairTable:
        """The numbers, and the `limit` most frequent pairs of each group."""
        groups = {
            group: WordPairGroup(
                self.counts[group].total(),
                tuple(self.examples(group, limit, content_only=content_only)),
            )
            for group in WORD_GROUPS
        }
        return WordPairTable(self.num_pairs, self.num_tokens, self.num_pieces, groups)

    def text(self, limit: int = 20, *, content_only: bool = False) -> str:
        """The same for people, a line for each group."""
        lines = [
            f"{self.num_pairs:,} pairs, {self.num_tokens:,} headline tokens, of which "
            f"{self.num_pieces:,} left out: no whole word on both sides"
        ]
        for group in WORD_GROUPS:
            examples = self.examples(group, limit, content_only=content_only)
            shown = ", ".join(f"({first}, {second}) {n:,}" for first, second, n in examples)
            lines.append(f"{group:<10} {self.counts[group].total():>7,}  {shown}".rstrip())
        return "\n".join(lines)


def sample(pairs: Sequence[T], number: int, seed: int) -> list[T]:
    """So many of the pairs, drawn by a seed, in their order; all if there are no more."""
    return [pairs[row] for row in sorted(permutation(seed, 0, len(pairs))[:number].tolist())]


def word_pairs(
    loaded: ModelBundle,
    pairs: Sequence[tuple[str, str]],
    rules: Sequence[PairingRule],
    progress: Progress = no_progress,
) -> dict[PairingRule, WordPairs]:
    """Pair each headline word of (lede, headline) with the source word it is aligned to.

    The rule "vocabulary" is the paper's: the likeliest of all types, whether the lede has it or
    not. "sentence" takes the likeliest of the lede's types, "attention" the place most attended to.
    The pairs go through the model once, for all rules.
    """
    for rule in rules:
        _refuse_rule(rule, loaded)
    found: dict[PairingRule, Counter[Pair | None]] = {rule: Counter() for rule in rules}
    for encoded, trace in track_progress(trace_pairs(loaded, pairs), STAGE, len(pairs), progress):
        if trace is not None:
            for rule in rules:
                found[rule].update(_pairs(loaded, encoded, trace, rule))
    return {rule: _grouped(found[rule], len(pairs)) for rule in rules}


def _refuse_rule(rule: str, loaded: ModelBundle) -> None:
    if rule not in get_args(PairingRule):
        raise ValueError(f"no rule to pair words by: {rule!r}")
    if rule != "attention" and not loaded.model.has_source_predictions:
        raise ScoreError(f"the rule {rule} needs a system with SPM; this one has attention only")


def _grouped(found: Counter[Pair | None], num_pairs: int) -> WordPairs:
    counts: dict[WordGroup, Counter[Pair]] = {group: Counter() for group in WORD_GROUPS}
    for pair, number in found.items():
        if pair is not None:
            counts[group_of(*pair)][pair] = number
    return WordPairs(counts, found[None], num_pairs)


def group_of(headline_word: str, source_word: str) -> WordGroup:
    """Compare two words, in whatever case.

    Words that share a form are inflections of one word. Forms are the word, its lemma if WordNet
    lists it as irregular (won, win), and the stems of both by Porter's rules. This includes
    derivations (nation, national) and a few words that only look alike (universe, university), and
    misses inflections that neither the list nor the rules know (die, dies).
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
    loaded: ModelBundle, encoded: EncodedPair, trace: PairTrace, rule: PairingRule
) -> Iterator[Pair | None]:
    """For each token of a headline its pair of words, or None where one is no whole word."""
    source = encoded.lede.ids
    whole = {source[place] for place in _whole_places(source, encoded.lede.word_ids)}
    places = _whole_places(encoded.ids, encoded.word_ids)
    for place, type_ in enumerate(_types(trace, source, len(encoded.ids), rule)):
        is_word = type_ in whole or (type_ not in source and _is_word(type_, loaded.tokenizer))
        if place in places and is_word:
            yield _plain(loaded, encoded.ids[place]), _plain(loaded, type_)
        else:
            yield None


def _types(
    trace: PairTrace, source: Sequence[int], num_headline: int, rule: PairingRule
) -> list[int]:
    """The source type that each token of a headline is aligned to, (J,)."""
    ids = np.asarray(source, np.int64)
    types = ids[trace.attention[:num_headline].argmax(1)]
    if trace.q is not None and rule != "attention":
        q = trace.q[:num_headline]  # (J, V)
        types = q.argmax(1) if rule == "vocabulary" else ids[q[:, ids].argmax(1)]
    return list(types.tolist())


def _whole_places(ids: Sequence[int], word_ids: Sequence[int]) -> set[int]:
    """Places of the tokens that are a word of their own, and not unknown."""
    sizes = Counter(word_ids)
    return {place for place, id_ in enumerate(ids) if sizes[word_ids[place]] == 1 and id_ != UNK}


def _is_word(type_: int, tokenizer: Tokenizer) -> bool:
    """Whether a type that the source does not have is a whole word."""
    words = tokenizer.decode_words([type_])
    return type_ != UNK and words != [] and tokenizer.encode_word(words[0]) == (type_,)


def _plain(loaded: ModelBundle, id_: int) -> str:
    (word,) = loaded.tokenizer.plain(loaded.tokenizer.decode_words([id_]))
    return word.lower()
