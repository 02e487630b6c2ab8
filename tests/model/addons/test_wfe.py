"""Word-frequency estimation against NumPy loops, and what it promises of headlines."""

import math
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from addon_reference import PAIRS, steps_of
from ledeline.config import SearchConfig
from ledeline.core.errors import ConfigError
from ledeline.data.dataset import Batch, padded
from ledeline.inference.engine_weights import refusal
from ledeline.model.addons.addon import Sizes
from ledeline.model.addons.wfe import WordFrequency, WordFrequencyConfig
from ledeline.model.build import build
from ledeline.model.system_config import SystemConfig
from ledeline.model.systems.encdec import EncDecConfig
from ledeline.model.systems.gru import GruConfig
from ledeline.search import Ensemble, search
from ledeline.search.step_model import map_tensors
from model_reference import BOS, EOS, PAD, below, sigmoid, weights_of
from systems import random_system

VOCABULARY = 11
SOURCES = padded([source for source, _ in PAIRS])
COMBINATIONS = [("wfe",), ("sgate", "wfe"), ("sgate", "spm", "wfe"), ("copy", "wfe")]


# --- the definition, slowly -----------------------------------------------------------------------


def estimate(weights, states):
    """r^ and g^ of one source, word by word."""
    first = [weights["of_frequency.weight"] @ h + weights["of_frequency.bias"] for h in states]
    second = [weights["of_occurrence.weight"] @ h + weights["of_occurrence.bias"] for h in states]
    total = sum(first)
    extremes = [max(column) for column in zip(*second, strict=True)]
    extremes += [min(column) for column in zip(*second, strict=True)]
    r_hat, g_hat = [], []
    for word in range(len(weights["frequency.bias"])):
        row, bias = weights["frequency.weight"][word], weights["frequency.bias"][word]
        r_hat.append(max(0.0, row @ total + bias))
        row, bias = weights["occurrence.weight"][word], weights["occurrence.bias"][word]
        g_hat.append(sigmoid(row @ extremes + bias))
    return r_hat, g_hat


def frequency_loss(estimates, headline, over=0.2, under=1.0, epsilon=0.25, power=2):
    total = 0.0
    for word, estimated in enumerate(estimates):
        error = estimated - headline.count(word)
        total += over * max(0, error - epsilon) ** power
        total += under * max(0, -error - epsilon) ** power
    return total


def log_of(probability):
    return math.log(probability) if probability > 0 else -math.inf


def search_logs(base, words, r_hat, g_hat):
    """What search adds up for every word after each of `words`."""
    remaining, rows = list(r_hat), []
    for distribution, word in zip(base, words, strict=True):
        if word not in (PAD, BOS, EOS):
            remaining[word] -= 1
        row = []
        for each, probability in enumerate(distribution):
            left = min(1.0, max(0.0, remaining[each])) * g_hat[each]
            row.append(log_of(probability) + (0.0 if each in (PAD, BOS, EOS) else log_of(left)))
        rows.append(row)
    return np.array(rows)


def budgeted(*names: str, **options: Any) -> Any:
    """A random system with some frequencies above 1 and some at 0."""
    return random_system(*names, **options).double()


def force(model: Any, r_hat: Any, g_hat: Any = 1.0) -> Any:
    """Let the estimator say this, (V,) or (B, V), of any source."""

    def forced(states: Tensor, mask: Tensor | None) -> tuple[Tensor, Tensor]:
        shape = len(states), VOCABULARY
        both = (torch.as_tensor(one, dtype=states.dtype) for one in (r_hat, g_hat))
        first, second = (one.expand(shape) for one in both)
        return first, second

    model.addons["wfe"].estimate = forced
    return model


# --- equations ------------------------------------------------------------------------------------


@pytest.mark.parametrize("names", COMBINATIONS, ids="+".join)
def test_the_loss_is_that_of_the_definition(names: tuple[str, ...]) -> None:
    model = budgeted(*names)
    weights = weights_of(model)
    losses = model(model.pairs(Batch.of(PAIRS)))
    for row, (source, headline) in enumerate(PAIRS):
        r_hat, g_hat = estimate(below(weights, "wfe."), steps_of(weights, source, headline).states)
        expected = frequency_loss([r * g for r, g in zip(r_hat, g_hat, strict=True)], headline)
        assert losses.named["frequency"][row].item() == pytest.approx(expected, rel=1e-9)
    torch.testing.assert_close(losses.total(), sum(losses.named.values()))


def test_all_its_keys_change_the_loss_as_the_definition_says() -> None:
    own = WordFrequencyConfig(size=3, epsilon=0.1, power=1.5, over=0.7, under=0.4, weight=2.5)
    config = SystemConfig.of(EncDecConfig(embedding_size=3, hidden_size=4, dropout=0.0), own)
    model: Any = build(config, VOCABULARY, seed=2).double().eval()
    assert model.addons["wfe"].of_frequency.weight.shape == (3, 4)
    weights = weights_of(model)
    source, headline = PAIRS[2]
    r_hat, g_hat = estimate(below(weights, "wfe."), steps_of(weights, source, headline).states)
    estimates = [r * g for r, g in zip(r_hat, g_hat, strict=True)]
    expected = 2.5 * frequency_loss(estimates, headline, 0.7, 0.4, 0.1, 1.5)
    found = model(model.pairs(Batch.of([PAIRS[2]]))).named["frequency"].item()
    assert found == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("key", ["epsilon", "over", "under", "size"])
def test_negative_values_are_refused(key: str) -> None:
    with pytest.raises(ConfigError, match="at least 0"):
        WordFrequencyConfig(**{key: -1 if key == "size" else -0.1})


@pytest.mark.parametrize("names", [("wfe",), ("sgate", "spm", "wfe")], ids="+".join)
def test_search_and_traces_are_those_of_the_definition(names: tuple[str, ...]) -> None:
    model = budgeted(*names)
    weights = weights_of(model)
    impossible = 0
    for source, headline in PAIRS:
        pairs = model.pairs(Batch.of([(source, headline)]))
        seen = steps_of(weights, source, headline)
        budget = estimate(below(weights, "wfe."), seen.states)
        expected = search_logs(seen.base, seen.words, *budget)
        state, memory = model.encode(pairs.sources)
        for j, word in enumerate(seen.words):
            logs, state = model.step(torch.tensor([[word]]), state, memory)
            np.testing.assert_allclose(logs[0, 0].detach().numpy(), expected[j], rtol=1e-9)
        forced = [expected[j, word] for j, word in enumerate(seen.targets)]
        traced = model.trace(pairs).log_probabilities[0].detach().numpy()
        np.testing.assert_allclose(traced, forced, rtol=1e-9)
        impossible += np.isinf(traced).sum()
    assert impossible  # some known words are over their budget


# --- the specification's tests, by number ---------------------------------------------------------


def test_1_estimates_have_their_ranges() -> None:
    model = budgeted("wfe")
    r_hat, g_hat = model.addons["wfe"].estimate(torch.randn(5, 6, 4).double(), None)
    assert (r_hat >= 0).all()
    assert (r_hat == 0).any()
    assert (r_hat > 1).any()
    assert ((g_hat > 0) & (g_hat < 1)).all()


def test_1_the_loss_is_zero_only_within_epsilon() -> None:
    addon = budgeted("wfe").addons["wfe"]
    counts = torch.tensor([0.0, 1.0, 2.0, 3.0])
    for offset, expected in [(0, 0), (0.25, 0), (-0.25, 0), (1, 0.1125), (-1, 0.5625)]:
        errors = addon.errors(counts + offset, counts)
        torch.testing.assert_close(errors, torch.full((4,), float(expected)))
    for offset in (0.26, -0.26):
        assert (addon.errors(counts + offset, counts) > 0).all()


def test_2_the_order_of_states_and_padding_change_nothing() -> None:
    addon = budgeted("wfe").addons["wfe"]
    states = torch.randn(2, 5, 4, generator=torch.Generator().manual_seed(1)).double()
    expected = addon.estimate(states, None)
    torch.testing.assert_close(addon.estimate(states.flip(1), None), expected)
    for filling in (0.0, 50.0, -50.0):
        wider = torch.cat([states, torch.full((2, 3, 4), filling).double()], 1)
        mask = torch.arange(8).expand(2, 8) < 5
        torch.testing.assert_close(addon.estimate(wider, mask), expected)
        assert not torch.allclose(addon.estimate(wider, None)[0], expected[0])


def test_3_what_remains_of_a_budget_counts() -> None:
    model = force(budgeted("wfe"), 1.75, 0.5)
    plain = budgeted()
    plain.load_state_dict(model.state_dict(), strict=False)
    pairs = model.pairs(Batch.of([([4, 5], [6, 6, 6])]))
    cost = model.trace(pairs).log_probabilities - plain.trace(pairs).log_probabilities
    expected = [math.log(0.5), math.log(0.75 * 0.5), -math.inf, 0.0]  # <eos> costs nothing
    np.testing.assert_allclose(cost[0].detach().numpy(), expected, atol=1e-12)


@pytest.mark.parametrize("system", [EncDecConfig, GruConfig])
def test_4_no_word_is_written_more_often_than_its_budget(system: Any) -> None:
    budget = torch.tensor([0.0, 0.5, 0, 0, 1.5, 0.2, 2.0, 0.0, 3.0, 1.0, 0.7])
    own = system(embedding_size=3, hidden_size=4, dropout=0.0)
    model = force(budgeted("wfe", system=own), budget, 0.9)
    plain = budgeted(system=own)
    plain.load_state_dict(model.state_dict(), strict=False)

    def most(model: Any) -> Counter[int]:
        counts: Counter[int] = Counter()
        for found in search(model, *SOURCES, SearchConfig(n_best=20, min_length=4)):
            for one in found:
                counts |= Counter(one.ids)
        return counts

    limits = {word: math.ceil(budget[word].item()) for word in range(VOCABULARY)}
    assert all(number <= limits[word] for word, number in most(model).items())
    assert any(number > limits[word] for word, number in most(plain).items())


def test_4_a_large_budget_changes_nothing() -> None:
    model = force(budgeted("wfe"), 1e6)
    plain = budgeted()
    plain.load_state_dict(model.state_dict(), strict=False)
    assert search(model, *SOURCES) == search(plain, *SOURCES)
    pairs = model.pairs(Batch.of(PAIRS))
    torch.testing.assert_close(
        model.trace(pairs).log_probabilities, plain.trace(pairs).log_probabilities
    )


def test_5_two_hypotheses_of_one_parent_have_budgets_of_their_own() -> None:
    model = force(budgeted("wfe"), 1.0)
    state, memory = model.encode(torch.tensor([[4, 5, 6]]))
    _, parent = model.step(torch.tensor([[BOS]]), state, memory)
    two = map_tensors(parent, lambda leaf: leaf.repeat_interleave(2, 1))
    logs, after = model.step(torch.tensor([[7, 8]]), two, memory)
    assert logs[0, 0, 7] == logs[0, 1, 8] == -math.inf
    assert logs[0, 0, 8] > -math.inf < logs[0, 1, 7]
    swapped = map_tensors(after, lambda leaf: leaf.index_select(1, torch.tensor([1, 0])))
    following, _ = model.step(torch.tensor([[9, 9]]), swapped, memory)
    for slot, first in enumerate((8, 7)):
        _, alone = model.step(torch.tensor([[first]]), parent, memory)
        expected, _ = model.step(torch.tensor([[9]]), alone, memory)
        torch.testing.assert_close(following[:, slot], expected[:, 0])


def test_6_with_the_true_counts_nothing_is_repeated_beyond_them() -> None:
    gold = torch.zeros(len(PAIRS), VOCABULARY)
    for row, (_, headline) in enumerate(PAIRS):
        for word in headline:
            gold[row, word] += 1
    model = budgeted("wfe")
    plain = budgeted()
    plain.load_state_dict(model.state_dict(), strict=False)

    def excess(found: Any) -> int:
        return sum(
            max(0, number - int(gold[row, word]))
            for row, hypotheses in enumerate(found)
            for one in hypotheses
            for word, number in Counter(one.ids).items()
        )

    assert excess(search(plain, *SOURCES)) > 0
    found = search(force(model, gold), *SOURCES)
    assert excess(found) == 0
    assert all(found)
    pairs = model.pairs(Batch.of(PAIRS))
    assert torch.equal(
        model.addons["wfe"].loss(_view(model, pairs), pairs), torch.zeros(3).double()
    )
    torch.testing.assert_close(  # the known headlines themselves stay possible
        model.trace(pairs).log_probabilities, plain.trace(pairs).log_probabilities
    )


def _view(model: Any, pairs: Any) -> Any:
    begun, unrolled = model._follow(pairs)
    return model._view(pairs, begun, unrolled)


def test_7_what_remains_never_grows() -> None:
    model = budgeted("wfe")
    state, memory = model.encode(torch.tensor([[4, 5, 6]]))
    (before,) = state.extras
    for word in (BOS, 7, 7, 4, 9):
        _, state = model.step(torch.tensor([[word]]), state, memory)
        (after,) = state.extras
        assert (after.remaining <= before.remaining).all()
        fell = (after.remaining < before.remaining).flatten().nonzero().flatten().tolist()
        assert fell == ([] if word == BOS else [word])
        before = after


# --- traps ----------------------------------------------------------------------------------------


def test_it_never_raises_a_probability_and_gradients_stay_finite() -> None:
    model = budgeted("wfe")
    plain = budgeted()
    plain.load_state_dict(model.state_dict(), strict=False)
    pairs = model.pairs(Batch.of(PAIRS))
    logs, base = (one.trace(pairs).log_probabilities for one in (model, plain))
    assert (logs <= base + 1e-12).all()  # both are rounded
    assert logs.isinf().any()
    logs[logs > -math.inf].sum().backward()
    assert all(p.grad is None or p.grad.isfinite().all() for p in model.parameters())


def test_training_of_the_headline_is_as_without_it() -> None:
    model = budgeted("spm", "wfe")
    plain = budgeted("spm")
    plain.load_state_dict(model.state_dict(), strict=False)
    pairs = model.pairs(Batch.of(PAIRS))
    with_it, without = model(pairs), plain(pairs)
    for name in ("target", "source"):
        torch.testing.assert_close(with_it.named[name], without.named[name])
    assert tuple(with_it.named) == ("target", "source", "frequency")


def test_where_no_word_is_left_the_headline_ends() -> None:
    one_word = torch.zeros(VOCABULARY).index_fill(0, torch.tensor([6]), 2.0)
    for found in search(force(budgeted("wfe"), one_word), *SOURCES, SearchConfig(n_best=5)):
        assert {one.ids for one in found} == {(6,), (6, 6)}
        assert all(math.isfinite(one.cost) for one in found)


def test_where_there_was_none_search_finds_nothing() -> None:
    """A headline has a word at least, so search forbids <eos> too at the first step."""
    assert search(force(budgeted("wfe"), 0.0), *SOURCES) == [[], [], []]


def test_padding_and_pad_steps_have_finite_traces() -> None:
    """So a masked sum of them is no NaN."""
    model = force(budgeted("spm", "wfe"), 0.0)
    pairs = model.pairs(Batch.of(PAIRS))
    assert pairs.target_mask is not None
    outside = ~pairs.headline_mask
    assert outside.any()
    assert model.trace(pairs).log_probabilities[outside].isfinite().all()


def test_in_an_ensemble_a_word_that_all_forbid_is_impossible() -> None:
    one, other = force(budgeted("wfe"), 0.0), force(budgeted("wfe", seed=5), 0.0)
    both = Ensemble([one, other])
    logs, _ = both.step(torch.tensor([[BOS]]), *both.encode(torch.tensor([[4, 5]]), None, None))
    assert not logs.isnan().any()
    assert (logs[..., EOS + 1 :] == -math.inf).all()


def test_states_may_have_a_size_of_their_own() -> None:
    addon = WordFrequency(WordFrequencyConfig(), Sizes(VOCABULARY, 3, 4, own_states=6))
    assert addon.of_frequency.weight.shape == (4, 6)
    assert addon.estimate(torch.randn(2, 5, 6), None)[0].shape == (2, VOCABULARY)


def test_every_word_starts_with_a_frequency_of_one() -> None:
    config = SystemConfig.of(EncDecConfig(embedding_size=3, hidden_size=4), WordFrequencyConfig())
    model: Any = build(config, VOCABULARY, seed=1)
    assert torch.equal(model.addons["wfe"].frequency.bias, torch.ones(VOCABULARY))
    assert torch.equal(model.addons["wfe"].occurrence.bias, torch.zeros(VOCABULARY))
    pairs = model.pairs(Batch.of(PAIRS))
    r_hat, _ = model.addons["wfe"].estimate(model.encoder(pairs.sources).states, None)
    assert (r_hat > 0.5).all()


def test_it_learns_the_counts() -> None:
    """The loss of some pairs falls, and their words are then within their budgets."""
    model = random_system("wfe", std=0.3)
    model.addons["wfe"].initialize_(torch.Generator())
    pairs = model.pairs(Batch.of(PAIRS))
    optimizer = torch.optim.Adam(model.parameters(), 0.05)
    losses = []
    for _ in range(60):
        optimizer.zero_grad()
        loss = model(pairs).named["frequency"].sum()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < 0.2 * losses[0]
    assert model.trace(pairs).log_probabilities[pairs.headline_mask].isfinite().all()


def test_autocast_computes_about_the_same() -> None:
    model = random_system("wfe")
    pairs = model.pairs(Batch.of(PAIRS))
    expected = model(pairs).named["frequency"]
    with torch.autocast("cpu", torch.bfloat16):
        found = model(pairs).named["frequency"]
    assert found.dtype == torch.float32
    torch.testing.assert_close(found, expected, rtol=0.1, atol=0.1)


def test_engines_refuse_it_and_folders_keep_it(stored: Callable[..., tuple[Any, Any]]) -> None:
    own = EncDecConfig(embedding_size=6, hidden_size=8)
    model, again = stored(SystemConfig.of(own, WordFrequencyConfig(size=5, over=0.3)))
    assert again.config.name == "EncDec+WFE"
    assert again.config.addons["wfe"] == WordFrequencyConfig(size=5, over=0.3)
    assert refusal(again) == "it does not know the add-on wfe"
    pairs = model.pairs(Batch.of(PAIRS))
    for name, loss in model(pairs).named.items():
        assert torch.equal(again(pairs).named[name], loss)
    assert search(again, *SOURCES) == search(model, *SOURCES)
