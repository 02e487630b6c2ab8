"""Forcing known headlines through a system in PyTorch."""

from collections.abc import Callable, Iterator
from itertools import islice, repeat
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from ledeline.inference import traces
from ledeline.inference.traces import teacher_force
from ledeline.model.format.model_folder import load_model
from ledeline.model.systems.encdec import EncDec
from ledeline.text.subwords import BOS, EOS, PAD

# Source and headline ids: <pad> steps, none to spare, more headline than source, no headline.
PAIRS = [
    ([9, 5, 7, 9, 11, 30, 8], [9, 8]),
    ([12, 13, 14], [40, 41]),
    ([20, 21], [6, 7, 8, 9]),
    ([15, 16, 17, 15, 18], []),
]


@pytest.fixture(scope="module")
def model(make_model: Callable[..., Path]) -> EncDec:
    return load_model(make_model()).model


@pytest.fixture(scope="module")
def bare(make_model: Callable[..., Path]) -> EncDec:
    return load_model(make_model(spm=False)).model


@pytest.fixture
def sizes(model: EncDec, monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, int]]:
    """Pairs and steps of each batch that goes through the model."""
    found: list[tuple[int, int]] = []
    plain = model.trace

    def spy(pairs: Any) -> Any:
        found.append(tuple(pairs.targets.shape))
        return plain(pairs)

    monkeypatch.setattr(model, "trace", spy)
    return found


@torch.inference_mode()
def step_by_step(model: EncDec, source: list[int], words: list[int]) -> Iterator[torch.Tensor]:
    """The SPM's distribution at each step, as a search would come to it."""
    state, memory = model.encode(torch.tensor([source]))
    for word in words:
        _, state = model.step(torch.tensor([[word]]), state, memory)
        predictions = model.source_predictions(state.decoder.attentional)
        assert predictions is not None
        yield predictions[0, 0]


def test_a_headline_has_a_row_for_each_sub_word_and_its_end(model: EncDec) -> None:
    for (source, headline), seen in zip(PAIRS, teacher_force(model, PAIRS), strict=True):
        assert seen.attention.shape == (len(headline) + 1, len(source))
        assert seen.q is not None
        assert seen.q.shape == (len(headline) + 1, model.vocabulary)
        assert seen.attention.sum(1) == pytest.approx(1, abs=1e-5)


def test_padding_goes_on_to_the_length_of_the_source(model: EncDec) -> None:
    found = list(teacher_force(model, PAIRS, padded=True))
    assert [seen.attention.shape for seen in found] == [(7, 7), (3, 3), (5, 2), (5, 5)]
    assert [len(seen.q) for seen in found if seen.q is not None] == [7, 3, 5, 5]


def test_padding_changes_nothing_before_it(model: EncDec) -> None:
    for plain, padded in zip(
        teacher_force(model, PAIRS), teacher_force(model, PAIRS, padded=True), strict=True
    ):
        rows = len(plain.attention)
        np.testing.assert_allclose(padded.attention[:rows], plain.attention, atol=1e-6)
        np.testing.assert_allclose(padded.q[:rows], plain.q, atol=1e-6)


def test_the_steps_are_headline_end_and_padding(model: EncDec) -> None:
    """Each step reads what the step before has written."""
    for (source, headline), seen in zip(
        PAIRS, teacher_force(model, PAIRS, padded=True), strict=True
    ):
        words = [BOS, *headline, EOS, *repeat(PAD, len(source))][: len(seen.attention)]
        expected = torch.stack(list(step_by_step(model, source, words)))
        np.testing.assert_allclose(seen.q, expected, atol=1e-5)


def test_pairs_of_a_batch_do_not_mix(model: EncDec) -> None:
    for pair, seen in zip(PAIRS, teacher_force(model, PAIRS, padded=True), strict=True):
        (alone,) = teacher_force(model, [pair], padded=True)
        np.testing.assert_allclose(seen.attention, alone.attention, atol=1e-6)
        np.testing.assert_allclose(seen.q, alone.q, atol=1e-6)


def test_without_spm_there_is_no_padding(bare: EncDec) -> None:
    for plain, padded in zip(
        teacher_force(bare, PAIRS), teacher_force(bare, PAIRS, padded=True), strict=True
    ):
        assert plain.q is None
        assert padded.q is None
        np.testing.assert_array_equal(padded.attention, plain.attention)


def test_a_plain_forcing_takes_no_step_it_does_not_need(
    model: EncDec, sizes: list[tuple[int, int]]
) -> None:
    list(teacher_force(model, PAIRS))
    list(teacher_force(model, PAIRS, padded=True))
    assert sizes == [(4, 5), (4, 7)]


def test_batches_are_small_where_pairs_are_long(
    model: EncDec, sizes: list[tuple[int, int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = list(teacher_force(model, PAIRS * 3, padded=True))
    sizes.clear()
    monkeypatch.setattr(traces, "_MAX_STEPS", 12)
    found = list(teacher_force(model, PAIRS * 3, batch_size=2, padded=True))
    assert [b for b, _ in sizes] == [1, 2, 1] * 3
    assert max(b * steps for b, steps in sizes) <= 12
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one.q, other.q, atol=1e-6)


def test_batches_have_so_many_pairs(model: EncDec, sizes: list[tuple[int, int]]) -> None:
    list(teacher_force(model, PAIRS * 3, batch_size=5))
    assert sizes == [(5, 5), (5, 5), (2, 5)]


def test_a_pair_beyond_the_limit_is_a_batch_of_its_own(
    model: EncDec, sizes: list[tuple[int, int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(traces, "_MAX_STEPS", 1)
    assert len(list(teacher_force(model, PAIRS))) == len(sizes) == 4


def test_pairs_without_end(model: EncDec) -> None:
    assert len(list(islice(teacher_force(model, repeat(PAIRS[0]), batch_size=3), 7))) == 7
    assert list(teacher_force(model, [])) == []
