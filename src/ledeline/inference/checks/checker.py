"""`Checker` says how far a lede supports a headline."""

from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any, Final, Self

import torch

from ledeline.core.errors import ArgumentError
from ledeline.core.shipped import SHIPPED
from ledeline.core.steps import Steps
from ledeline.inference.checks.calibration import Calibration
from ledeline.inference.checks.check import Check
from ledeline.inference.checks.followed import follow
from ledeline.inference.checks.rules import RuleChecker
from ledeline.inference.checks.spans import verifier_doubts
from ledeline.inference.checks.verifier_folder import VerifierBundle, read_verifier
from ledeline.model.format.model_folder import load_model
from ledeline.model.verifier import PairView, Verifier, VerifierBatch
from ledeline.runtime.cpu import has_int8
from ledeline.runtime.engine import Engine
from ledeline.text.tokenizer import Tokenizer

VERIFIER: Final = SHIPPED.with_name("verifier")
MAX_LEDE, MAX_HEADLINE = 512, 64  # sub-words that are read
_LEDES_AT_ONCE: Final = 16
_DECIMALS: Final = 4


class Checker:
    """Says how far ledes support headlines, and which words are doubtful.

    Rules find numbers, names and claims that the lede does not have; a trained verifier, which
    sees what the bundled model thinks of the headline, judges the rest. Several threads may use
    one Checker at once.
    """

    def __init__(
        self,
        generator: Engine,
        tokenizer: Tokenizer,
        verifier: Verifier,
        calibration: Calibration,
    ) -> None:
        self._generator, self._tokenizer = generator, tokenizer
        self._verifier, self._calibration = verifier, calibration

    @classmethod
    def load(cls, generator: Engine | None = None) -> Self:
        """The checker that comes with ledeline.

        It needs the bundled model, and loads it unless an engine that runs it is given.
        """
        verifier, calibration = _bundled_verifier()
        tokenizer = Tokenizer.load(SHIPPED)
        return cls(generator or bundled_engine(), tokenizer, verifier, calibration)

    def check(self, lede: str, headline: str) -> Check:
        """How far a lede supports a headline."""
        return self.check_batch([(lede, headline)])[0]

    def check_batch(self, pairs: Iterable[tuple[str, str]]) -> list[Check]:
        """How far each lede supports its headline. Pairs are (lede, headline)."""
        checks: list[Check] = []
        asked = [_texts(pair, number) for number, pair in enumerate(pairs, start=1)]
        for start in range(0, len(asked), _LEDES_AT_ONCE):
            some = [(lede, [headline]) for lede, headline in asked[start : start + _LEDES_AT_ONCE]]
            checks += [one for (one,) in _run(self.steps(some))]
        return checks

    def steps(self, asked: Sequence[tuple[str, Sequence[str]]]) -> Steps[list[list[Check]]]:
        """The checks of some headlines of each lede, a short step at a time."""
        ids = [
            (
                self._tokenizer.encode(self._tokenizer.words(lede))[:MAX_LEDE],
                [self._headline_ids(one) for one in headlines],
            )
            for lede, headlines in asked
        ]
        rows = [row for row, (source, own) in enumerate(ids) if source and any(own)]
        checks = [[Check(None)] * len(headlines) for _, headlines in asked]
        if not rows:
            return checks
        views = yield from follow(self._generator, [ids[row] for row in rows])
        for row, view in zip(rows, views, strict=True):
            checks[row] = self.judge(*asked[row], view)
            yield
        return checks

    def _headline_ids(self, headline: str) -> list[int]:
        words = self._tokenizer.headline_words(headline)
        return self._tokenizer.encode(words)[:MAX_HEADLINE]

    @torch.inference_mode()
    def judge(self, lede: str, headlines: Sequence[str], view: PairView) -> list[Check]:
        """The checks of the headlines of one lede, from what the generator made of them."""
        judged = self._verifier(VerifierBatch.of([view]))
        labels = judged.labels.double().log_softmax(-1)
        wrong, kinds = judged.doubts.sigmoid().tolist(), judged.kinds.argmax(1).tolist()
        ids, scores = view.headlines.tolist(), view.scores.tolist()
        rules, calibration = RuleChecker(lede), self._calibration
        checks = []
        for n, (headline, log_labels) in enumerate(zip(headlines, labels.tolist(), strict=True)):
            own = [one for one in ids[n] if one]
            if not own:
                checks.append(Check(None))
                continue
            doubts = rules.doubts(headline)
            support = calibration.support(log_labels, scores[n], doubts)
            if support < calibration.doubted_below and not doubts:
                words = self._tokenizer.plain(self._tokenizer.decode_words(own))
                by_word = list(zip(self._tokenizer.word_ids(own), wrong[n], strict=False))
                doubts = verifier_doubts(lede, headline, words, by_word, kinds[n])
            value = calibration.value(log_labels, scores[n], len(own), doubts)
            checks.append(Check(round(support, _DECIMALS), tuple(doubts), value))
        return checks


def check(lede: str, headline: str) -> Check:
    """How far a lede supports a headline: its support from 0 to 1, and the words that are doubtful.

    For many pairs, keep a `Checker.load()` and use its `check_batch`.
    """
    return _shared_checker().check(lede, headline)


def _texts(pair: Any, number: int) -> tuple[str, str]:
    """A pair of texts, or an error that says what it is instead."""
    try:
        lede, headline = pair
    except (TypeError, ValueError):
        raise ArgumentError(f"pair {number} is not a lede and a headline") from None
    for name, text in (("lede", lede), ("headline", headline)):
        if not isinstance(text, str):
            raise ArgumentError(
                f"the {name} of pair {number} is a {type(text).__name__}, not a str"
            )
    return lede, headline


def _run(steps: Steps[list[list[Check]]]) -> list[list[Check]]:
    """All steps at once."""
    while True:
        try:
            next(steps)
        except StopIteration as end:
            return end.value  # type: ignore[no-any-return]


@lru_cache(maxsize=1)
def _shared_checker() -> Checker:
    return Checker.load()


@lru_cache(maxsize=1)
def bundled_engine() -> Engine:
    """The bundled model, whose states the verifier knows."""
    model = load_model(SHIPPED).model
    return Engine(model, "int8" if has_int8() else "float32")  # type: ignore[arg-type]


@lru_cache(maxsize=1)
def _bundled_verifier() -> VerifierBundle:
    return read_verifier(VERIFIER)
