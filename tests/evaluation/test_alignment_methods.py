"""Pairs of text aligned by a model."""

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import get_args

import pytest

from ledeline.evaluation.alignment_methods import METHODS, STAGE, align, align_each, methods_of
from ledeline.evaluation.links import (
    Links,
    SpmRule,
    attention_links,
    spm_links,
    to_words,
    whitespace_word_ids,
)
from ledeline.evaluation.teacher_forcing import MAX_LENGTH, encode_pair
from ledeline.inference.traces import teacher_force
from ledeline.model.format.model_folder import ModelBundle, load_model
from ledeline.synth.newsroom import generate

PAIRS = [(story.lede, story.headline) for story in generate(6, 3)]
BASELINES = ["identity", "diagonal"]


def links_of_each(
    loaded: ModelBundle, pairs: Iterable[tuple[str, str]]
) -> Iterator[dict[str, Links]]:
    return (aligned.links for aligned in align_each(loaded, pairs))


@pytest.fixture(scope="module", params=["natural", "paper"])
def loaded(request: pytest.FixtureRequest, make_model: Callable[..., Path]) -> ModelBundle:
    return load_model(make_model(request.param))


@pytest.fixture(scope="module")
def bare(make_model: Callable[..., Path]) -> ModelBundle:
    return load_model(make_model(spm=False))


def by_model(links: dict[str, Links]) -> dict[str, Links]:
    return {method: those for method, those in links.items() if method not in BASELINES}


def test_methods(loaded: ModelBundle, bare: ModelBundle) -> None:
    assert methods_of(loaded.model) == tuple(METHODS)
    assert methods_of(bare.model) == tuple(METHODS)[2:]
    assert tuple(align(loaded, PAIRS).links) == tuple(METHODS)
    assert align(bare, []).links == {method: [] for method in methods_of(bare.model)}


def test_pairs_one_by_one_and_together(loaded: ModelBundle) -> None:
    together = align(loaded, PAIRS).links
    for number, links in enumerate(links_of_each(loaded, iter(PAIRS))):
        assert links == {method: those[number] for method, those in together.items()}
        ((alone,),) = [links_of_each(loaded, [PAIRS[number]])]
        assert links == alone


def test_links_are_those_of_the_steps_that_write(loaded: ModelBundle) -> None:
    for (lede, headline), links in zip(PAIRS, links_of_each(loaded, PAIRS), strict=True):
        encoded = encode_pair(loaded, lede, headline)
        (trace,) = teacher_force(loaded.model, [(encoded.lede.ids, encoded.ids)])
        both = (
            whitespace_word_ids(lede, loaded.tokenizer),
            whitespace_word_ids(headline, loaded.tokenizer, headline=True),
        )
        for method, shift in (("attention", 0), ("attention-shifted", 1)):
            fine = attention_links(trace.attention, len(encoded.ids), shift)
            assert links[method] == to_words(fine, *both)
        assert trace.q is not None
        for rule in get_args(SpmRule):
            fine = spm_links(
                trace.q[:-1], encoded.lede.ids, rule=rule, attention=trace.attention[:-1]
            )
            assert links[f"spm-{rule}"] == to_words(fine, *both)
        assert {j for _, j in links["spm-sentence"]} == set(both[1])  # every word has a link


def test_words_left_to_padding(loaded: ModelBundle) -> None:
    some = False
    for (lede, headline), aligned in zip(PAIRS, align_each(loaded, PAIRS), strict=True):
        encoded = encode_pair(loaded, lede, headline)
        (trace,) = teacher_force(loaded.model, [(encoded.lede.ids, encoded.ids)], padded=True)
        assert trace.q is not None
        words = whitespace_word_ids(lede, loaded.tokenizer)
        expected = set()
        for step in range(len(encoded.ids) + 1, len(encoded.lede.ids)):
            type_ = int(trace.q[step].argmax())
            places = [i for i, id_ in enumerate(encoded.lede.ids) if id_ == type_]
            if places:
                expected.add(words[max(places, key=lambda i: trace.attention[step, i])])
        assert aligned.left_to_pad == expected
        some = some or bool(expected)
    assert some


def test_without_spm_nothing_is_left_to_padding(bare: ModelBundle) -> None:
    assert [aligned.left_to_pad for aligned in align_each(bare, PAIRS)] == [None] * len(PAIRS)


@pytest.mark.parametrize(
    "pair",
    [
        ("", "Oil up"),
        ("Oil rose.", ""),
        ("", ""),
        (" \u200b", "\n"),
        ("日本", "Oil"),
        ("\ud800", "a"),
    ],
)
def test_a_pair_with_nothing_to_link(loaded: ModelBundle, pair: tuple[str, str]) -> None:
    found = list(align_each(loaded, [PAIRS[0], pair, PAIRS[1]]))
    assert not any(by_model(found[1].links).values())
    assert list(found[1].links) == list(METHODS)
    assert found[1].left_to_pad is not None
    assert found[0] == next(align_each(loaded, [PAIRS[0]]))
    assert found[2] == next(align_each(loaded, [PAIRS[1]]))


def test_baselines_know_only_the_number_of_words(loaded: ModelBundle) -> None:
    (links,) = links_of_each(loaded, [("Oil \u200b rose.", "Oil prices up")])
    assert links["identity"] == {(0, 0), (1, 1)}
    assert links["diagonal"] == {(0, 0), (1, 1), (1, 2)}


@pytest.mark.parametrize("number", [600, 3000])
def test_what_is_too_long_is_linked_as_far_as_it_is_read(loaded: ModelBundle, number: int) -> None:
    lede, headline = PAIRS[0]
    long_lede, long_headline = " ".join([lede] * (number // 20)), " ".join([headline] * number)
    for pair in ((long_lede, headline), (lede, long_headline), (long_lede, long_headline)):
        encoded = encode_pair(loaded, *pair)
        assert 0 < len(encoded.lede.ids) <= MAX_LENGTH
        assert 0 < len(encoded.ids) == len(encoded.word_ids) <= MAX_LENGTH
        (aligned,) = align_each(loaded, [pair])
        last = whitespace_word_ids(pair[0], loaded.tokenizer)[len(encoded.lede.ids) - 1]
        headline_words = whitespace_word_ids(pair[1], loaded.tokenizer, headline=True)
        read = set(headline_words[: len(encoded.ids)])
        assert {j for _, j in aligned.links["attention"]} == read
        for links in by_model(aligned.links).values():
            assert max((i for i, _ in links), default=0) <= last
            assert {j for _, j in links} <= read


def test_one_endless_word(loaded: ModelBundle) -> None:
    (aligned,) = align_each(loaded, [("a" * 5000, "a b")])
    assert aligned.links["attention"] == {(0, 0), (0, 1)}


def test_few_pairs_are_held_at_a_time(loaded: ModelBundle) -> None:
    drawn = 0

    def pairs() -> Iterator[tuple[str, str]]:
        nonlocal drawn
        while drawn < 1000:
            drawn += 1
            yield "Oil rose.", "Oil up"

    found = links_of_each(loaded, pairs())
    first = next(found)
    assert drawn < 500
    assert sum(links == first for links in found) == 999
    assert drawn == 1000


def test_progress(loaded: ModelBundle) -> None:
    told: list[tuple[str, int, int | None]] = []
    align(loaded, PAIRS, lambda *said: told.append(said))
    assert told == [(STAGE, len(PAIRS), len(PAIRS))]
