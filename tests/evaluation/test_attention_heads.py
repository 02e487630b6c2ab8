"""The attention that explains headlines best is found, and the choice is honest."""

from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from known_heads import RIGHT, beginnings, place_transformer
from ledeline.core.errors import CorpusError, ModelError
from ledeline.corpus.evaluation_sets import EvaluationSet
from ledeline.evaluation import attention_heads
from ledeline.evaluation.alignment_methods import align
from ledeline.evaluation.attention_heads import (
    AttentionReading,
    GoldPairs,
    Halves,
    MeasuredHeads,
    attentions_of,
    measure_heads,
    read_halves,
    refuse_attention_that_writes,
)
from ledeline.evaluation.links import (
    AlignmentScore,
    alignment_score,
    parse_pharaoh,
    to_words,
    whitespace_word_ids,
)
from ledeline.evaluation.teacher_forcing import encode_pair
from ledeline.inference.traces import teacher_force, trace_every_attention
from ledeline.model.build import build
from ledeline.model.format.model_folder import ModelBundle, load_model
from ledeline.model.systems.abs import AbsConfig
from ledeline.model.systems.transformer import TransformerConfig
from ledeline.synth.newsroom import generate
from systems import random_system

pytestmark = pytest.mark.usefixtures("one_thread")

METHODS = {"attention": 0, "attention-shifted": 1}
STORIES = list(generate(6, 4))
SET = EvaluationSet(
    "room",
    ("room.jsonl",),
    [*(story.lede for story in STORIES), "日本", "Oil rose."],
    [*(story.headline for story in STORIES), "Oil", ""],
    [*(story.alignment for story in STORIES), "0-0", ""],
    "room.jsonl",
)


def small(layers: int = 2, heads: int = 2, **chosen: int) -> TransformerConfig:
    sizes = {"embedding_size": 8, "hidden_size": 8, "encoder_layers": 1}
    return TransformerConfig(**sizes, decoder_layers=layers, heads=heads, **chosen)  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def bundle(make_model: Callable[..., Path]) -> ModelBundle:
    """A model whose tokenizer others share."""
    return load_model(make_model())


def with_system(bundle: ModelBundle, system: Any, *names: str) -> ModelBundle:
    size = bundle.tokenizer.vocabulary_size
    return bundle._replace(model=random_system(*names, system=system, vocabulary=size))


@pytest.fixture(scope="module")
def loaded(bundle: ModelBundle) -> ModelBundle:
    return with_system(bundle, small(), "spm", "sgate")


@pytest.fixture(scope="module")
def measured(loaded: ModelBundle) -> MeasuredHeads:
    return measure_heads(loaded, read_halves(SET))


def scored(bundle: ModelBundle, half: GoldPairs) -> dict[str, AlignmentScore]:
    """The scores of each method that `ledeline align` would show, without dropped words."""
    links = align(bundle, half.pairs).links
    return {method: alignment_score(found, half.gold) for method, found in links.items()}


class TestFigures:
    def test_each_attention_is_scored_as_that_of_a_model_with_this_choice(
        self, loaded: ModelBundle, measured: MeasuredHeads
    ) -> None:
        halves = read_halves(SET)
        for layer, head in product((1, 2), (0, 1, 2)):
            config = attentions_of(loaded).explained_by(layer, head)
            model = build(config, loaded.tokenizer.vocabulary_size).eval()
            model.load_state_dict(loaded.model.state_dict())
            both = [scored(loaded._replace(model=model), half) for half in halves]
            for method in METHODS:
                found = measured.scores[AttentionReading(layer, head, method)]
                assert found == tuple(half[method] for half in both)

    def test_the_mean_of_all(self, loaded: ModelBundle, measured: MeasuredHeads) -> None:
        for half, name in zip(read_halves(SET), ("first", "second"), strict=True):
            for method, shift in METHODS.items():
                links = [self.slow_links(loaded, *pair, shift) for pair in half.pairs]
                found = measured.scores[AttentionReading(None, 0, method)]
                assert getattr(found, name) == alignment_score(links, half.gold)

    def slow_links(self, loaded: ModelBundle, lede: str, headline: str, shift: int) -> Any:
        encoded = encode_pair(loaded, lede, headline)
        if not encoded.lede.ids:
            return frozenset()
        (every,) = trace_every_attention(attentions_of(loaded), [(encoded.lede.ids, encoded.ids)])
        places = [
            max(
                range(len(encoded.lede.ids)),
                key=lambda i, step=step: sum(  # type: ignore[misc]
                    float(every[layer, head, step, i]) for layer in (0, 1) for head in (0, 1)
                ),
            )
            for step in range(shift, shift + len(encoded.ids))
        ]
        source = whitespace_word_ids(lede, loaded.tokenizer)
        words = whitespace_word_ids(headline, loaded.tokenizer, headline=True)
        return to_words(((i, j) for j, i in enumerate(places)), source, words)

    def test_the_spm_and_the_model_as_it_is(
        self, loaded: ModelBundle, measured: MeasuredHeads, bundle: ModelBundle
    ) -> None:
        both = [scored(loaded, half) for half in read_halves(SET)]
        assert measured.others == {
            method: tuple(half[method] for half in both)
            for method in ("spm-vocabulary", "spm-sentence", "attention")
        }
        now = AttentionReading(2, 0, "attention")  # the default
        assert measured.others["attention"] == measured.scores[now]
        bare = measure_heads(with_system(bundle, small()), read_halves(SET))
        assert list(bare.others) == ["attention"]

    def test_all_are_there_and_the_best_come_first(self, measured: MeasuredHeads) -> None:
        places = [*product((1, 2), (0, 1, 2)), (None, 0)]
        expected = {AttentionReading(*place, method) for place in places for method in METHODS}
        assert set(measured.scores) == expected
        errors = [both.first.error_rate for both in measured.scores.values()]
        assert errors == sorted(errors)
        assert len(set(errors)) > 2
        usable = [one for one in measured.scores if one.can_explain]
        assert usable[0] == measured.best
        assert all(one.layer and one.method == "attention" for one in usable)
        assert len(usable) == 6

    def test_json(self, measured: MeasuredHeads) -> None:
        fields, best = measured.as_dict(), measured.best
        assert fields["pairs"] == {"first": 4, "second": 4}
        assert (fields["best"]["layer"], fields["best"]["head"]) == (best.layer, best.head)
        assert len(fields["attentions"]) == 14
        for one, both in zip(fields["attentions"], measured.scores.values(), strict=True):
            assert one["first"]["error_rate"] == both.first.error_rate
            assert one["second"]["precision"] == both.second.precision
        assert list(fields["others"]) == ["spm-vocabulary", "spm-sentence", "attention"]

    def test_progress(self, loaded: ModelBundle) -> None:
        told: list[tuple[str, int, int | None]] = []
        measure_heads(loaded, read_halves(SET, 4), lambda *said: told.append(said))
        assert told == [("measure", 2, 2)] * 2 + [("align", 2, 2)] * 2


def test_a_trace_has_the_attention_of_each_layer_and_head(loaded: ModelBundle) -> None:
    """In batches with padding, as one by one."""
    pairs = [([5, 6, 7, 8], [9, 5]), ([6, 5], [7, 8, 9, 5]), ([9, 9, 9], [])]
    system, vocabulary = attentions_of(loaded), loaded.tokenizer.vocabulary_size
    every = list(trace_every_attention(system, pairs))
    assert [one.shape for one in every] == [(2, 2, 3, 4), (2, 2, 5, 2), (2, 2, 1, 3)]
    for layer, head in product((1, 2), (0, 1, 2)):
        model = build(system.explained_by(layer, head), vocabulary).eval()
        model.load_state_dict(loaded.model.state_dict())
        for one, seen in zip(every, teacher_force(model, pairs), strict=True):
            expected = one[layer - 1, head - 1] if head else one[layer - 1].mean(0)
            np.testing.assert_allclose(seen.attention, expected, atol=1e-6)
    for pair, one in zip(pairs, every, strict=True):
        (alone,) = trace_every_attention(system, [pair])
        np.testing.assert_allclose(one, alone, atol=1e-6)
    assert not torch.is_inference_mode_enabled()


def test_the_head_that_is_right_by_construction_is_found(bundle: ModelBundle) -> None:
    rows = beginnings(8)
    columns = [[row[name] for row in rows] for name in ("lede", "headline", "alignment")]
    test_set = EvaluationSet("beginnings", ("a.jsonl",), *columns, "a.jsonl")  # type: ignore[arg-type]
    model = place_transformer(bundle.tokenizer.vocabulary_size)
    found = measure_heads(bundle._replace(model=model), read_halves(test_set))
    assert found.best == AttentionReading(*RIGHT, "attention")
    assert [half.error_rate for half in found.scores[found.best]] == [0, 0]
    others = [both.first.error_rate for one, both in found.scores.items() if one != found.best]
    assert min(others) > 0.2


class TestHalves:
    PAIRS = (("a b", "a b"),) * 4
    STRAIGHT, CROSSED = parse_pharaoh("0-0 1-1"), parse_pharaoh("0-1 1-0")

    @pytest.fixture
    def given(self, bundle: ModelBundle, monkeypatch: pytest.MonkeyPatch) -> ModelBundle:
        """Head 1 looks straight, head 2 across."""
        encoded = encode_pair(bundle, *self.PAIRS[0])
        assert len(encoded.ids) == len(encoded.lede.ids) == 2

        def looks(_: Any, pairs: Any) -> Iterator[Any]:
            straight, across = [[0.9, 0.1], [0.2, 0.8]], [[0.1, 0.9], [0.8, 0.2]]
            for _ in pairs:
                yield np.array([[[*straight, [0.5, 0.5]], [*across, [0.5, 0.5]]]])

        monkeypatch.setattr(attention_heads, "trace_every_attention", looks)
        return with_system(bundle, small(layers=1))

    def halves(self, first: Any, second: Any) -> Halves:
        return Halves(*(GoldPairs(self.PAIRS[:2], [gold] * 2) for gold in (first, second)))

    def test_the_first_chooses_and_the_second_checks(self, given: ModelBundle) -> None:
        for first, second, head in (
            (self.STRAIGHT, self.CROSSED, 1),
            (self.CROSSED, self.STRAIGHT, 2),
        ):
            found = measure_heads(given, self.halves(first, second))
            assert found.best == AttentionReading(1, head, "attention")
            scores = found.scores[found.best]
            assert (scores.first.error_rate, scores.second.error_rate) == (0, 1)
            same = measure_heads(given, self.halves(first, first))
            assert list(same.scores) == list(found.scores)
            assert same.scores[same.best].second.error_rate == 0

    def test_they_are_cut_in_order(self) -> None:
        first, second = read_halves(SET)
        assert [*first.pairs, *second.pairs] == SET.pairs
        assert [*first.gold, *second.gold] == [parse_pharaoh(one) for one in SET.alignments or ()]
        assert (len(first.pairs), len(second.pairs)) == (4, 4)
        first, second = read_halves(SET, 5)
        assert (list(first.pairs), list(second.pairs)) == (SET.pairs[:2], SET.pairs[2:5])
        assert len(second.gold) == 3

    @pytest.mark.parametrize(
        ("changes", "limit", "sentence"),
        [
            ({"alignments": None, "gold_file": ""}, None, r"room\.jsonl has no gold links; name a"),
            ({"alignments": [""] * 8, "gold_file": "g.txt"}, None, r"g\.txt has no gold links"),
            ({}, 1, r"room\.jsonl: one half .* and 1 pair is too few for that; give more pairs"),
            ({"alignments": ["0-0", *[""] * 7]}, None, "8 pairs are too few for that"),
            ({"alignments": [*[""] * 7, ""]}, 2, "has no gold links"),
        ],
    )
    def test_pairs_that_do_not_do(
        self, changes: dict[str, Any], limit: int | None, sentence: str
    ) -> None:
        with pytest.raises(CorpusError, match=sentence):
            read_halves(SET._replace(**changes), limit)


def test_a_system_without_a_choice_is_refused(bundle: ModelBundle) -> None:
    one = r"EncDec\+sGate\+SPM has one attention only, so there is no layer or head to choose"
    for loaded, sentence in (
        (bundle, one),
        (with_system(bundle, small(1, 1)), "^Transformer has one attention only"),
        (with_system(bundle, AbsConfig(encoder="bow")), "^ABS has no attention, so"),
    ):
        with pytest.raises(ModelError, match=sentence):
            measure_heads(loaded, read_halves(SET))
    assert attentions_of(with_system(bundle, small(2, 1))).num_attentions == (2, 1)


def test_an_attention_that_writes_is_not_changed(bundle: ModelBundle) -> None:
    """Copying points with it; the others do not read it."""
    refuse_attention_that_writes(with_system(bundle, small(), "spm", "wfe", "word_prediction"))
    copying = with_system(bundle, small(), "copy")
    with pytest.raises(ModelError, match=r"learned to write by its attention \(\[copy\]\), so a"):
        refuse_attention_that_writes(copying)
    assert measure_heads(copying, read_halves(SET, 4)).num_first == 2
