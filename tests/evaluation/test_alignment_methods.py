"""Pairs of text aligned by a model."""

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import get_args

import pytest

from ledeline.evaluation.aligner import METHODS, STAGE, align, alignments, methods
from ledeline.evaluation.alignment import Links, Rule, attention_links, owners, spm_links, to_words
from ledeline.evaluation.tracing import LONGEST, read_pair
from ledeline.inference.attribution import force
from ledeline.model.format.folder import ModelBundle, load_model
from ledeline.synth.newsroom import generate

PAIRS = [(story.lede, story.headline) for story in generate(6, 3)]
BASELINES = ["identity", "diagonal"]


def align_each(loaded: ModelBundle, pairs: Iterable[tuple[str, str]]) -> Iterator[dict[str, Links]]:
    return (aligned.links for aligned in alignments(loaded, pairs))


@pytest.fixture(scope="module", params=["natural", "paper"])
def loaded(request: pytest.FixtureRequest, make_model: Callable[..., Path]) -> ModelBundle:
    return load_model(make_model(request.param))


@pytest.fixture(scope="module")
def bare(make_model: Callable[..., Path]) -> ModelBundle:
    return load_model(make_model(spm=False))


def by_model(links: dict[str, Links]) -> dict[str, Links]:
    return {method: those for method, those in links.items() if method not in BASELINES}


def test_methods(loaded: ModelBundle, bare: ModelBundle) -> None:
    assert methods(loaded.model) == tuple(METHODS)
    assert methods(bare.model) == tuple(METHODS)[2:]
    assert tuple(align(loaded, PAIRS).links) == tuple(METHODS)
    assert align(bare, []).links == {method: [] for method in methods(bare.model)}


def test_pairs_one_by_one_and_together(loaded: ModelBundle) -> None:
    together = align(loaded, PAIRS).links
    for number, links in enumerate(align_each(loaded, iter(PAIRS))):
        assert links == {method: those[number] for method, those in together.items()}
        ((alone,),) = [align_each(loaded, [PAIRS[number]])]
        assert links == alone


def test_links_are_those_of_the_steps_that_write(loaded: ModelBundle) -> None:
    for (lede, headline), links in zip(PAIRS, align_each(loaded, PAIRS), strict=True):
        reading = read_pair(loaded, lede, headline)
        (seen,) = force(loaded.model, [(reading.lede.ids, reading.ids)])
        both = (
            owners(lede, loaded.tokenizer),
            owners(headline, loaded.tokenizer, headline=True),
        )
        for method, shift in (("attention", 0), ("attention-shifted", 1)):
            fine = attention_links(seen.attention, len(reading.ids), shift)
            assert links[method] == to_words(fine, *both)
        assert seen.q is not None
        for rule in get_args(Rule):
            fine = spm_links(
                seen.q[:-1], reading.lede.ids, rule=rule, attention=seen.attention[:-1]
            )
            assert links[f"spm-{rule}"] == to_words(fine, *both)
        assert {j for _, j in links["spm-sentence"]} == set(both[1])  # every word has a link


def test_words_left_to_padding(loaded: ModelBundle) -> None:
    some = False
    for (lede, headline), aligned in zip(PAIRS, alignments(loaded, PAIRS), strict=True):
        reading = read_pair(loaded, lede, headline)
        (seen,) = force(loaded.model, [(reading.lede.ids, reading.ids)], padded=True)
        assert seen.q is not None
        words = owners(lede, loaded.tokenizer)
        expected = set()
        for step in range(len(reading.ids) + 1, len(reading.lede.ids)):
            type_ = int(seen.q[step].argmax())
            places = [i for i, id_ in enumerate(reading.lede.ids) if id_ == type_]
            if places:
                expected.add(words[max(places, key=lambda i: seen.attention[step, i])])
        assert aligned.left_to_pad == expected
        some = some or bool(expected)
    assert some


def test_without_spm_nothing_is_left_to_padding(bare: ModelBundle) -> None:
    assert [aligned.left_to_pad for aligned in alignments(bare, PAIRS)] == [None] * len(PAIRS)


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
    found = list(alignments(loaded, [PAIRS[0], pair, PAIRS[1]]))
    assert not any(by_model(found[1].links).values())
    assert list(found[1].links) == list(METHODS)
    assert found[1].left_to_pad is not None
    assert found[0] == next(alignments(loaded, [PAIRS[0]]))
    assert found[2] == next(alignments(loaded, [PAIRS[1]]))


def test_baselines_know_only_the_number_of_words(loaded: ModelBundle) -> None:
    (links,) = align_each(loaded, [("Oil \u200b rose.", "Oil prices up")])
    assert links["identity"] == {(0, 0), (1, 1)}
    assert links["diagonal"] == {(0, 0), (1, 1), (1, 2)}


@pytest.mark.parametrize("number", [600, 3000])
def test_what_is_too_long_is_linked_as_far_as_it_is_read(loaded: ModelBundle, number: int) -> None:
    lede, headline = PAIRS[0]
    long_lede, long_headline = " ".join([lede] * (number // 20)), " ".join([headline] * number)
    for pair in ((long_lede, headline), (lede, long_headline), (long_lede, long_headline)):
        reading = read_pair(loaded, *pair)
        assert 0 < len(reading.lede.ids) <= LONGEST
        assert 0 < len(reading.ids) == len(reading.owners) <= LONGEST
        (aligned,) = alignments(loaded, [pair])
        last = owners(pair[0], loaded.tokenizer)[len(reading.lede.ids) - 1]
        headline_owners = owners(pair[1], loaded.tokenizer, headline=True)
        read = set(headline_owners[: len(reading.ids)])
        assert {j for _, j in aligned.links["attention"]} == read
        for links in by_model(aligned.links).values():
            assert max((i for i, _ in links), default=0) <= last
            assert {j for _, j in links} <= read


def test_one_endless_word(loaded: ModelBundle) -> None:
    (aligned,) = alignments(loaded, [("a" * 5000, "a b")])
    assert aligned.links["attention"] == {(0, 0), (0, 1)}


def test_few_pairs_are_held_at_a_time(loaded: ModelBundle) -> None:
    drawn = 0

    def pairs() -> Iterator[tuple[str, str]]:
        nonlocal drawn
        while drawn < 1000:
            drawn += 1
            yield "Oil rose.", "Oil up"

    found = align_each(loaded, pairs())
    first = next(found)
    assert drawn < 500
    assert sum(links == first for links in found) == 999
    assert drawn == 1000


def test_progress(loaded: ModelBundle) -> None:
    told: list[tuple[str, int, int | None]] = []
    align(loaded, PAIRS, lambda *said: told.append(said))
    assert told == [(STAGE, len(PAIRS), len(PAIRS))]
