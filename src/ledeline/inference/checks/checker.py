"""`Checker` says how far a lede supports a headline."""

import math
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import Any, Final, NamedTuple, Self

from ledeline.core.errors import ArgumentError, ModelError
from ledeline.core.shipped import SHIPPED
from ledeline.core.steps import Steps, run_steps
from ledeline.inference.checks.calibration import Calibration
from ledeline.inference.checks.check import Check
from ledeline.inference.checks.followed import MAX_HEADLINE, AskedIds, follow
from ledeline.inference.checks.rules import RuleChecker
from ledeline.inference.checks.spans import verifier_doubts
from ledeline.inference.checks.verifier_folder import VerifierBundle, read_verifier
from ledeline.inference.engine_bundle import read_engine_bundle
from ledeline.runtime.engine import Engine
from ledeline.runtime.verifier_engine import GeneratorView, VerifierEngine, VerifierSays
from ledeline.text.tokenizer import Tokenizer

VERIFIER: Final = SHIPPED.with_name("verifier")
MAX_LEDE: Final = 512  # sub-words that are read
_LEDES_AT_ONCE: Final = 16
_SUBWORDS_AT_ONCE: Final = 640  # of headlines that are judged together
_DECIMALS: Final = 4
_FAR: Final = 30.0  # from 0, where a sigmoid is 0 or 1


class BundledGenerator(NamedTuple):
    """The bundled model, whose states the verifier knows."""

    engine: Engine
    tokenizer: Tokenizer


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
        verifier: VerifierEngine,
        calibration: Calibration,
    ) -> None:
        self._generator, self._tokenizer = generator, tokenizer
        self._verifier, self._calibration = verifier, calibration

    @classmethod
    def load(cls, generator: BundledGenerator | None = None) -> Self:
        """The checker that comes with ledeline.

        It needs the bundled model, and loads it unless it is given.
        """
        engine, tokenizer = generator or bundled_generator()
        verifier, calibration = _bundled_verifier()
        if not verifier.knows(engine):
            raise ModelError(
                "the model has other sizes than the bundled one, which the verifier knows, but its "
                "model.json says check; remove that, or use --no-check"
            )
        return cls(engine, tokenizer, verifier, calibration)

    def check(self, lede: str, headline: str) -> Check:
        """How far a lede supports a headline."""
        return self.check_batch([(lede, headline)])[0]

    def check_batch(self, pairs: Iterable[tuple[str, str]]) -> list[Check]:
        """How far each lede supports its headline. Pairs are (lede, headline)."""
        checks: list[Check] = []
        asked = [_texts(pair, number) for number, pair in enumerate(_each_pair(pairs), start=1)]
        for start in range(0, len(asked), _LEDES_AT_ONCE):
            some = [(lede, [headline]) for lede, headline in asked[start : start + _LEDES_AT_ONCE]]
            checks += [one for (one,) in run_steps(self.steps(some))]
        return checks

    def steps(self, asked: Sequence[tuple[str, Sequence[str]]]) -> Steps[list[list[Check]]]:
        """The checks of some headlines of each lede, a short step at a time."""
        ids = [self.read(lede, headlines) for lede, headlines in asked]
        rows = [row for row, one in enumerate(ids) if one.can_be_checked]
        checks = [[Check(None)] * len(headlines) for _, headlines in asked]
        views = yield from self.follow([ids[row] for row in rows])
        for row, view in zip(rows, views, strict=True):
            checks[row] = yield from self.judge_steps(*asked[row], view)
        return checks

    def read(self, lede: str, headlines: Sequence[str]) -> AskedIds:
        """A lede and some headlines as the generator reads them."""
        tokenizer = self._tokenizer
        return AskedIds(
            tokenizer.encode(tokenizer.words(lede))[:MAX_LEDE],
            [tokenizer.encode(tokenizer.headline_words(one))[:MAX_HEADLINE] for one in headlines],
        )

    def follow(self, asked: Sequence[AskedIds]) -> Steps[list[GeneratorView]]:
        """What the generator makes of some headlines of each lede; each must have some words."""
        return (yield from follow(self._generator, asked)) if asked else []

    def judge(self, lede: str, headlines: Sequence[str], view: GeneratorView) -> list[Check]:
        """The checks of the headlines of one lede, from what the generator made of them."""
        return run_steps(self.judge_steps(lede, headlines, view))

    def judge_steps(
        self, lede: str, headlines: Sequence[str], view: GeneratorView
    ) -> Steps[list[Check]]:
        """The same, a short step at a time."""
        rules, checks = RuleChecker(lede), list[Check]()
        size = max(1, _SUBWORDS_AT_ONCE // max(1, *map(len, view.headlines)))
        for start in range(0, len(headlines), size):
            some = view.rows(start, start + size)
            judged = self._verifier.judge(some)
            yield
            for headline, seen in zip(
                headlines[start : start + size], _each(some, judged), strict=True
            ):
                checks.append(self._check(lede, headline, rules, seen))
                yield
        return checks

    def _check(self, lede: str, headline: str, rules: RuleChecker, seen: "_Seen") -> Check:
        """The check of one headline, from what the rules and the verifier say."""
        own = seen.ids
        if not own:
            return Check(None)
        calibration, doubts = self._calibration, rules.doubts(headline)
        support = calibration.support(seen.log_labels, seen.score, doubts)
        if support < calibration.doubted_below and not doubts:
            words = self._tokenizer.plain(self._tokenizer.decode_words(own))
            by_word = list(zip(self._tokenizer.word_ids(own), seen.wrong, strict=True))
            doubts = verifier_doubts(lede, headline, words, by_word, seen.kind)
        value = calibration.value(seen.log_labels, seen.score, len(own), doubts)
        return Check(round(support, _DECIMALS), tuple(doubts), value)


class _Seen(NamedTuple):
    """What verifier and generator say of a headline."""

    ids: Sequence[int]
    score: float
    log_labels: list[float]
    wrong: list[float]  # how likely each sub-word is part of an error
    kind: int


def _each(view: GeneratorView, judged: VerifierSays) -> Iterator[_Seen]:
    """What is said of each headline."""
    rows = zip(view.headlines, view.logs, *judged, strict=True)
    for ids, logs, labels, doubts, kinds in rows:
        score = math.fsum(logs) / (len(ids) + 1)  # exact sums are the same everywhere
        wrong = [1 / (1 + math.exp(-max(-_FAR, min(_FAR, one)))) for one in doubts]
        yield _Seen(
            ids, score, _log_softmax(labels), wrong, max(range(len(kinds)), key=kinds.__getitem__)
        )


def _log_softmax(values: Sequence[float]) -> list[float]:
    most = max(values)
    norm = most + math.log(math.fsum(math.exp(value - most) for value in values))
    return [value - norm for value in values]


def check(lede: str, headline: str) -> Check:
    """How far a lede supports a headline: its support from 0 to 1, and the words that are doubtful.

    For many pairs, keep a `Checker.load()` and use its `check_batch`.
    """
    return _shared_checker().check(lede, headline)


def _each_pair(pairs: Iterable[Any]) -> Iterator[Any]:
    """An iterator over pairs; refuses what has none."""
    try:
        return iter(pairs)
    except TypeError:
        kind = type(pairs).__name__
        raise ArgumentError(
            f"pairs is of type {kind}; pass a list of pairs, such as [(lede, headline)]"
        ) from None


def _texts(pair: Any, number: int) -> tuple[str, str]:
    """A pair of texts, or an error that says what it is instead."""
    try:
        if isinstance(pair, str | dict):
            raise TypeError("its letters or keys are no lede and no headline")
        lede, headline = pair
    except (TypeError, ValueError):
        raise ArgumentError(f"pair {number} is not a lede and a headline") from None
    for name, text in (("lede", lede), ("headline", headline)):
        if not isinstance(text, str):
            kind = type(text).__name__
            raise ArgumentError(f"the {name} of pair {number} is of type {kind}; pass a str")
    return lede, headline


@lru_cache(maxsize=1)
def _shared_checker() -> Checker:
    return Checker.load()


@lru_cache(maxsize=1)
def bundled_generator() -> BundledGenerator:
    """The bundled model, in int8."""
    bundle = read_engine_bundle(SHIPPED)
    assert bundle is not None
    return BundledGenerator(bundle.model.engine("int8"), bundle.tokenizer)


@lru_cache(maxsize=1)
def _bundled_verifier() -> VerifierBundle:
    return read_verifier(VERIFIER)
