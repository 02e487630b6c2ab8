"""From ids to a `Headline`: its words, its warnings, and where its words came from."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ledeline.inference.attribution import AttributionWeights, word_weights
from ledeline.inference.detokenize import HeadlineWords, headline_words, replace_unknown_words
from ledeline.inference.headline import Alignment, Candidate, Headline, HeadlineWarning, Matrix
from ledeline.inference.options import Options
from ledeline.inference.source_text import SourceText
from ledeline.search import Hypothesis
from ledeline.text.function_words import is_content
from ledeline.text.subwords import SPECIALS, UNK
from ledeline.text.tokenizer import Tokenizer


class Composer:
    """Makes headlines of the hypotheses that a search found."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer

    def headline(
        self,
        lede: SourceText,
        found: Sequence[Hypothesis],
        weights: Mapping[int, AttributionWeights],
        options: Options,
    ) -> Headline:
        """The headline of a text; weights by rank, for the hypotheses that need them."""
        all_words = [
            replace_unknown_words(one.ids, self._tokenizer, lede, weights[rank].best)
            if options.replace_unknown and UNK in one.ids
            else headline_words(one.ids, self._tokenizer)
            for rank, one in enumerate(found)
        ]
        ranked = tuple(map(self._candidate, found, all_words))
        if not ranked or not ranked[0].text:
            nothing = (
                [HeadlineWarning("truncated", "the search came to no headline")] if lede.ids else []
            )
            return Headline(lede.text, "", warnings=(*lede.warnings, *nothing))
        best = ranked[0]
        return Headline(
            source=lede.text,
            text=best.text,
            tokens=best.tokens,
            score=best.score,
            alternatives=ranked if options.search.n_best > 1 else (),
            truncated=best.truncated,
            warnings=(*lede.warnings, *self._warnings(lede, best, all_words[0])),
            alignment=self._alignment(lede, all_words[0], weights[0]) if options.explain else None,
        )

    def _candidate(self, found: Hypothesis, words: HeadlineWords) -> Candidate:
        text, tokens = self._tokenizer.join(words.words), tuple(self._tokenizer.plain(words.words))
        return Candidate(text, tokens, found.score, found.truncated)

    def _alignment(
        self, lede: SourceText, words: HeadlineWords, weights: AttributionWeights
    ) -> Alignment:
        def rows(matrix: npt.NDArray[np.floating[Any]]) -> Matrix:
            return tuple(map(tuple, word_weights(matrix, words.word_ids, lede.word_ids).tolist()))

        return Alignment(
            source=tuple(self._tokenizer.spaced(lede.words)),
            headline=tuple(self._tokenizer.spaced(words.words)),
            attention=rows(weights.attention),
            spm=None if weights.spm is None else rows(weights.spm),
        )

    def _warnings(
        self, lede: SourceText, headline: Candidate, words: HeadlineWords
    ) -> Iterator[HeadlineWarning]:
        if headline.truncated:
            yield HeadlineWarning(
                "truncated",
                f"no end came within {len(words.word_ids)} sub-words; this is a beginning",
            )
        if words.has_unknown:
            yield HeadlineWarning("unseen", "the headline has a word that the model does not know")
        known = (word.casefold() for word in headline.tokens if SPECIALS[UNK] not in word)
        for word, times in Counter(known).items():
            if times > 1 and is_content(word):
                available = [one.casefold() for one in self._tokenizer.plain(lede.words)]
                if times > available.count(word):
                    yield HeadlineWarning("repetition", f"{word!r} is there {times} times")
