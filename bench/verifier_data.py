"""What the verifier learns from: labelled headlines, and headlines of changed ledes."""

import random
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from ledeline.config import SearchConfig
from ledeline.core.steps import run_steps
from ledeline.inference.checks.followed import AskedIds, follow
from ledeline.inference.checks.pair_words import stem_of
from ledeline.model.verifier import PairView
from ledeline.model.verifier_labels import KINDS, LABELS
from ledeline.runtime.engine import Engine
from ledeline.runtime.verifier_engine import GeneratorView
from ledeline.search.engine_search import EngineSearch
from ledeline.text.subwords import PAD
from ledeline.text.tokenizer import Tokenizer
from truth_labels import GOOD, FoundLabel
from verifier_corrupt import corrupt

LEDES_AT_ONCE = 32
MAX_LEDE, MAX_HEADLINE = 127, 48  # sub-words
BEAM, MAX_WRITTEN = 5, 40  # of headlines of changed ledes
UNKNOWN = -1  # which words are wrong, or the kind of error, is not known


class Group(NamedTuple):
    """The labelled headlines of one lede."""

    found: Sequence[FoundLabel]
    view: PairView
    labels: Tensor  # (N,), by their place in LABELS; of two readings the worse
    kinds: Tensor  # (N,), by their place in KINDS, or UNKNOWN
    wrong: Tensor  # (N, J): 1 where a reader called the sub-word wrong, 0 elsewhere, or UNKNOWN


class ChangedPair(NamedTuple):
    """A lede and a changed one, each beside its own headline and the other's."""

    lede: PairView
    changed: PairView


def seen_by_torch(view: GeneratorView) -> PairView:
    """What the engine saw, as the verifier in PyTorch takes it."""
    num_headlines, longest = len(view.headlines), max(map(len, view.headlines), default=0)
    headlines = torch.full((num_headlines, longest), PAD)
    for row, ids in enumerate(view.headlines):
        headlines[row, : len(ids)] = torch.tensor(ids, dtype=torch.long)

    def floats(values: bytes | memoryview) -> Tensor:
        return torch.frombuffer(bytearray(values), dtype=torch.float32)

    values = floats(view.values).view(len(view.source), -1)
    states = floats(view.states).view(num_headlines, longest + 1, values.shape[1])
    return PairView(
        torch.tensor(view.source), values, headlines, states, torch.tensor(view.logs).float()
    )


def followed(engine: Engine, asked: Sequence[AskedIds]) -> list[PairView]:
    """What the generator makes of known headlines of some ledes."""
    return [seen_by_torch(view) for view in run_steps(follow(engine, asked))]


def compact(view: PairView) -> PairView:
    """The same in half the memory."""
    return view._replace(
        values=view.values.half(), states=view.states.half(), logs=view.logs.half()
    )


def exact(view: PairView) -> PairView:
    """The same in float32."""
    return view._replace(
        values=view.values.float(), states=view.states.float(), logs=view.logs.float()
    )


def subword_classes(types: Sequence[str]) -> Tensor:
    """Which sub-words count as the same: forms of a word, and pieces that differ in case. (V,)."""
    numbers: dict[tuple[str, str], int] = {}
    classes = torch.zeros(len(types))
    for number, text in enumerate(types):
        low = text.casefold()
        key = ("word", stem_of(low)) if low.isalpha() else ("piece", low)
        if not text.startswith("<"):
            classes[number] = numbers.setdefault(key, len(numbers) + 1)
    return classes


# --- labelled headlines -------------------------------------------------------------------------


def labelled_groups(
    found: Iterable[FoundLabel],
    engine: Engine,
    tokenizer: Tokenizer,
    tell: Callable[[int], None] = lambda _: None,
) -> list[Group]:
    """The groups of labelled headlines, each with what the generator makes of it."""
    by_lede: dict[str, list[FoundLabel]] = {}
    for one in found:
        by_lede.setdefault(one.lede, []).append(one)
    groups: list[Group] = []
    ledes = sorted(by_lede, key=len)
    for start in range(0, len(ledes), LEDES_AT_ONCE):
        some = [(lede, by_lede[lede]) for lede in ledes[start : start + LEDES_AT_ONCE]]
        asked = [
            AskedIds(
                tokenizer.encode(tokenizer.words(lede))[:MAX_LEDE],
                [_headline_ids(one.headline, tokenizer) for one in own],
            )
            for lede, own in some
        ]
        views = followed(engine, asked)
        groups += [
            _group(compact(view), own, tokenizer)
            for view, (_, own) in zip(views, some, strict=True)
        ]
        tell(len(groups))
    return groups


def _headline_ids(headline: str, tokenizer: Tokenizer) -> list[int]:
    return tokenizer.encode(tokenizer.headline_words(headline))[:MAX_HEADLINE]


def _group(view: PairView, own: Sequence[FoundLabel], tokenizer: Tokenizer) -> Group:
    labels, kinds = [], []
    wrong = torch.full(view.headlines.shape, float(UNKNOWN))
    for row, one in enumerate(own):
        label, kind, words = worst_reading(one)
        labels.append(LABELS.index(label))
        kinds.append(KINDS.index(kind) if kind in KINDS else UNKNOWN)
        ids = [id_ for id_ in view.headlines[row].tolist() if id_ != PAD]
        wrong[row, : len(ids)] = torch.tensor(
            wrong_marks(one.headline, label, words, ids, tokenizer)
        )
    return Group(own, view, torch.tensor(labels), torch.tensor(kinds), wrong)


def worst_reading(one: FoundLabel) -> tuple[str, str | None, str | None]:
    """The label of the strictest reader, the kind of error, the words that are wrong."""
    readings = zip(one.judged.labels, one.judged.kinds, one.judged.words, strict=True)
    return max(readings, key=lambda reading: LABELS.index(reading[0]))


def wrong_marks(
    headline: str, label: str, words: str | None, ids: Sequence[int], tokenizer: Tokenizer
) -> list[int]:
    """Which sub-words are of the words that a reader named, or UNKNOWN for all."""
    if label in GOOD:
        return [0] * len(ids)
    all_words, sought = (
        [word.casefold() for word in tokenizer.plain(tokenizer.headline_words(text))]
        for text in (headline, (words or "").partition(" (")[0])
    )
    for start in range(len(all_words) - len(sought) + 1):
        if sought and all_words[start : start + len(sought)] == sought:
            some = range(start, start + len(sought))
            return [int(word in some) for word in tokenizer.word_ids(ids)]
    return [UNKNOWN] * len(ids)


# --- headlines of changed ledes -----------------------------------------------------------------


def changed_pairs(
    ledes: Sequence[str], engine: Engine, tokenizer: Tokenizer, seed: int
) -> list[ChangedPair]:
    """Headlines of ledes and of changed ledes, where the change shows in one of them."""
    rng = random.Random(seed)
    all_words = [tokenizer.words(lede) for lede in ledes]
    changed = [
        (words, found[1]) for words in all_words if (found := corrupt(words, rng, all_words))
    ]
    sources = [
        [tokenizer.encode(words)[:MAX_LEDE] for words in both]
        for both in zip(*changed, strict=True)
    ]
    written = [_write(engine, some) for some in sources]
    pairs = []
    for lede, other, a, b in zip(*sources, *written, strict=True):
        if _differ(lede, other, a, b):
            views = (
                followed(engine, [AskedIds(lede, [a, b])]),
                followed(engine, [AskedIds(other, [b, a])]),
            )
            pairs.append(ChangedPair(*(compact(one) for (one,) in views)))
    return pairs


def _write(engine: Engine, sources: Sequence[Sequence[int]]) -> list[list[int]]:
    """The best headline of each source."""
    config = SearchConfig(beam=BEAM, block_ngrams=2, max_length=MAX_WRITTEN)
    written: list[list[int]] = [[] for _ in sources]
    order = sorted(range(len(sources)), key=lambda row: len(sources[row]))
    for start in range(0, len(order), LEDES_AT_ONCE):
        rows = order[start : start + LEDES_AT_ONCE]
        running = EngineSearch([engine], [sources[row] for row in rows], config)
        while running.running:
            running.step()
        for row, hypotheses in zip(rows, running.hypotheses, strict=True):
            written[row] = list(hypotheses[0].ids) if hypotheses else []
    return written


def _differ(lede: Sequence[int], other: Sequence[int], a: Sequence[int], b: Sequence[int]) -> bool:
    """Whether two headlines differ in what was changed."""
    touched = set(lede) ^ set(other)
    if not a or not b or a == b:
        return False
    return not touched or bool(touched & {*a, *b}) or sorted(a) == sorted(b)
