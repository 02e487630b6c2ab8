"""From ids to a `Headline`: its words, its warnings, and where its words came from."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from ledeline.inference.attribution import AttributionWeights, Rows, word_weights
from ledeline.inference.checks.check import Check
from ledeline.inference.detokenize import HeadlineWords, headline_words, replace_unknown_words
from ledeline.inference.headline import Alignment, Candidate, Headline, HeadlineWarning, Matrix
from ledeline.inference.options import Options
from ledeline.inference.source_text import SourceText
from ledeline.inference.typography.draft import LedeText
from ledeline.inference.typography.finish import PrintedWords, printed_words
from ledeline.search.hypothesis import Hypothesis
from ledeline.text.function_words import is_content
from ledeline.text.profiles import NATURAL
from ledeline.text.subwords import SPECIALS, UNK
from ledeline.text.tokenizer import Tokenizer


class ComposedCandidate(NamedTuple):
    """A hypothesis in words."""

    found: Hypothesis
    words: HeadlineWords  # as the model wrote them
    candidate: Candidate
    printed: PrintedWords | None = None  # what its typography made of them; None: nothing else

    def checked(self, check: Check) -> "ComposedCandidate":
        """The same with its check."""
        known = self.candidate._replace(support=check.support, doubts=check.doubts)
        return self._replace(candidate=known)


class Composer:
    """Makes headlines of the hypotheses that a search found."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer
        self._finishes = tokenizer.profile.name == NATURAL.name

    def candidates(
        self,
        lede: SourceText,
        found: Sequence[Hypothesis],
        weights: Mapping[int, AttributionWeights],
        options: Options,
    ) -> list[ComposedCandidate]:
        """The hypotheses in words; weights by number, for those with words to replace."""
        composed = []
        lede_text = LedeText(self._tokenizer.join(lede.words))
        for number, one in enumerate(found):
            if options.replace_unknown and UNK in one.ids:
                best = weights[number].best
                words = replace_unknown_words(one.ids, self._tokenizer, lede, best)
            else:
                words = headline_words(one.ids, self._tokenizer)
            text = self._tokenizer.join(words.words)
            printed = None
            if self._finishes and not words.has_unknown:
                printed = printed_words(text, words.words, lede_text, self._tokenizer)
            tokens = tuple(self._tokenizer.plain(printed.words if printed else words.words))
            candidate = Candidate(
                printed.text if printed else text, tokens, one.score, one.truncated
            )
            composed.append(ComposedCandidate(one, words, candidate, printed))
        return composed

    def headline(
        self,
        lede: SourceText,
        ranked: Sequence[ComposedCandidate],
        explained: AttributionWeights | None,
        options: Options,
    ) -> Headline:
        """The headline of a text: the first of its candidates."""
        if not ranked or not ranked[0].candidate.text:
            nothing = (
                [HeadlineWarning("truncated", "the search came to no headline")] if lede.ids else []
            )
            return Headline(lede.text, "", warnings=(*lede.warnings, *nothing))
        words, best = ranked[0].words, ranked[0].candidate
        if options.min_support is not None and (best.support or 0) < options.min_support:
            return _left_out(lede, best.support, options.min_support)
        doubts = [HeadlineWarning("doubt", str(doubt)) for doubt in best.doubts]
        return Headline(
            source=lede.text,
            text=best.text,
            tokens=best.tokens,
            score=best.score,
            alternatives=(
                tuple(one.candidate for one in distinct(ranked))
                if options.search.n_best > 1
                else ()
            ),
            truncated=best.truncated,
            warnings=(*lede.warnings, *self._warnings(lede, best, words), *doubts),
            alignment=self._alignment(lede, ranked[0], explained)
            if explained is not None
            else None,
            support=best.support,
            doubts=best.doubts,
        )

    def _alignment(
        self, lede: SourceText, composed: ComposedCandidate, weights: AttributionWeights
    ) -> Alignment:
        words, printed = composed.words, composed.printed

        def rows(matrix: Rows) -> Matrix:
            own = tuple(map(tuple, word_weights(matrix, words.word_ids, lede.word_ids)))
            return tuple(own[origin] for origin in printed.origins) if printed else own

        return Alignment(
            source=tuple(self._tokenizer.spaced(lede.words)),
            headline=tuple(self._tokenizer.spaced(printed.words if printed else words.words)),
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


def distinct(ranked: Iterable[ComposedCandidate]) -> list[ComposedCandidate]:
    """The candidates without those that typography made like one before."""
    kept: dict[str, ComposedCandidate] = {}
    found = list[ComposedCandidate]()
    for one in ranked:
        first = kept.setdefault(one.candidate.text, one)
        if first is one or not (first.printed or one.printed):
            found.append(one)
    return found


def _left_out(lede: SourceText, support: float | None, least: float) -> Headline:
    """No headline, because none had enough support."""
    said = "none" if support is None else f"{support:.2f}"
    message = f"the best headline has a support of {said}, less than {least:g}"
    warning = HeadlineWarning("left out", message)
    return Headline(lede.text, "", warnings=(*lede.warnings, warning), support=support)
