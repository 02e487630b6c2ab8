"""Word prediction against NumPy loops; it trains, and search does not know it."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from addon_reference import PAIRS, steps_of
from ledeline.config import SearchConfig
from ledeline.core.errors import ConfigError
from ledeline.data.dataset import Batch, padded
from ledeline.inference.engine_weights import engine_of, refusal
from ledeline.model.addons.addon import Sizes
from ledeline.model.addons.word_prediction import (
    SourceWords,
    WordPredictionConfig,
    remaining_mask,
)
from ledeline.model.build import build
from ledeline.model.layers.encoder import Encoded
from ledeline.model.system_config import SystemConfig
from ledeline.model.systems.encdec import EncDecConfig
from ledeline.model.systems.gru import GruConfig
from ledeline.search import search
from ledeline.search.engine_search import EngineSearch
from model_reference import EOS, below, distribution, softmax, weights_of
from systems import random_system

VOCABULARY = 11
SOURCES = padded([source for source, _ in PAIRS])
COMBINATIONS = [("word_prediction",), ("sgate", "spm", "word_prediction")]


# --- the definition, slowly -----------------------------------------------------------------------


def source_words(weights, states, sentence):
    """P_E of one source."""
    attention, energies = below(weights, "attention."), []
    query = attention["of_query.weight"] @ sentence
    for state in states:
        key = attention["of_state.weight"] @ state + attention["of_state.bias"]
        energies.append(attention["energy.weight"][0] @ np.tanh(query + key))
    context = np.zeros(len(sentence))
    for weight, state in zip(softmax(energies), states, strict=True):
        context = context + weight * state
    mixed = weights["mix.weight"] @ np.concatenate([sentence, context]) + weights["mix.bias"]
    return distribution(below(weights, "output."), np.tanh(mixed))


def encoder_loss(weights, seen, headline):
    """WP_E of one pair."""
    predicted = source_words(below(weights, "of_source."), seen.states, seen.sentence)
    words = [*headline, EOS]
    return sum(-np.log(predicted[word]) for word in words) / len(words)


def decoder_loss(weights, seen, headline):
    """WP_D of one pair."""
    words, total = [*headline, EOS], 0.0
    for j in range(len(words)):
        predicted = distribution(below(weights, "of_step."), seen.z[j])
        remaining = words[j:]
        total += sum(-np.log(predicted[word]) for word in remaining) / len(remaining)
    return total / len(words)


def expected_loss(model: Any, source: list[int], headline: list[int]) -> float:
    weights = weights_of(model)
    own, seen, total = below(weights, "word_prediction."), steps_of(weights, source, headline), 0.0
    if any(name.startswith("of_source") for name in own):
        total += encoder_loss(own, seen, headline)
    if any(name.startswith("of_step") for name in own):
        total += decoder_loss(own, seen, headline)
    return total


# --- equations ------------------------------------------------------------------------------------


@pytest.mark.parametrize("names", COMBINATIONS, ids="+".join)
def test_the_loss_is_that_of_the_definition(names: tuple[str, ...]) -> None:
    model = random_system(*names).double()
    losses = model(model.pairs(Batch.of(PAIRS)))
    for row, pair in enumerate(PAIRS):
        expected = expected_loss(model, *pair)
        assert losses.named["words"][row].item() == pytest.approx(expected, rel=1e-9)
    assert tuple(losses.named) == ("target", *(("source",) if "spm" in names else ()), "words")
    torch.testing.assert_close(losses.total(), sum(losses.named.values()))


@pytest.mark.parametrize(("encoder", "decoder"), [(True, False), (False, True), (True, True)])
def test_either_half_may_be_left_out(encoder: bool, decoder: bool) -> None:
    own = WordPredictionConfig(encoder=encoder, decoder=decoder, weight=0.5)
    config = SystemConfig.of(EncDecConfig(embedding_size=3, hidden_size=4, dropout=0.0), own)
    model: Any = build(config, VOCABULARY, seed=2).double().eval()
    losses = model(model.pairs(Batch.of(PAIRS))).named["words"]
    for row, pair in enumerate(PAIRS):
        assert losses[row].item() == pytest.approx(0.5 * expected_loss(model, *pair), rel=1e-9)
    parts = {name.split(".")[1] for name in model.state_dict() if name.startswith("word_")}
    assert parts == {*(["of_source"] if encoder else []), *(["of_step"] if decoder else [])}
    losses.sum().backward()
    learned = (p for n, p in model.named_parameters() if n.startswith("word_prediction"))
    assert all(parameter.grad.abs().max() > 0 for parameter in learned)


def test_both_halves_may_not() -> None:
    with pytest.raises(ConfigError, match=r"needs word_prediction\.decoder"):
        WordPredictionConfig(encoder=False, decoder=False)


# --- the specification's test: section 7, number 4 ------------------------------------------------


def test_the_last_step_has_the_end_alone_and_weights_sum_to_one() -> None:
    model = random_system("spm", "word_prediction").double()
    pairs = model.pairs(Batch.of(PAIRS))
    mask = remaining_mask(pairs.headline_mask)  # (B, J, J)
    for row, (_, headline) in enumerate(PAIRS):
        for j in range(mask.shape[1]):
            found = pairs.targets[row][mask[row, j]].tolist()
            assert found == [*headline, EOS][j:]  # nothing at a <pad>
        assert pairs.targets[row][mask[row, len(headline)]].tolist() == [EOS]
    # a prediction that gives every word the same costs just that at every step: weights sum to 1
    addon = model.addons["word_prediction"]
    addon.of_source = None
    for parameter in addon.of_step.parameters():
        torch.nn.init.zeros_(parameter)
    losses = model(pairs).named["words"]
    torch.testing.assert_close(losses, torch.full_like(losses, np.log(VOCABULARY)))


def test_the_last_step_learns_the_end_alone() -> None:
    """The gradient of a bias is the sum over words of (P - share); at z_J only <eos> has a share."""
    model = random_system("word_prediction").double()
    pairs = model.pairs(Batch.of([([4, 5], [])]))  # one step, the last
    model(pairs).named["words"].sum().backward()
    gradient = model.addons["word_prediction"].of_step.bias.grad
    assert [index for index, value in enumerate(gradient.tolist()) if value < 0] == [EOS]


# --- traps ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("system", [EncDecConfig, GruConfig])
def test_search_and_the_other_losses_are_as_without_it(system: Any) -> None:
    own = system(embedding_size=3, hidden_size=4, dropout=0.0)
    model = random_system("spm", "word_prediction", system=own)
    plain = random_system("spm", system=own)
    plain.load_state_dict(model.state_dict(), strict=False)
    pairs = model.pairs(Batch.of(PAIRS))
    for name, loss in plain(pairs).named.items():
        assert torch.equal(model(pairs).named[name], loss)
    assert search(model, *SOURCES) == search(plain, *SOURCES)


def test_engines_run_it() -> None:
    model = random_system("sgate", "word_prediction")
    assert refusal(model) is None
    ids = [row[:length].tolist() for row, length in zip(*SOURCES, strict=True)]
    running = EngineSearch([engine_of(model, "float32")], ids, SearchConfig())
    while running.running:
        running.step()
    for ours, theirs in zip(running.hypotheses, search(model, *SOURCES), strict=True):
        assert [one.ids for one in ours] == [one.ids for one in theirs]


def test_the_encoder_and_the_decoder_learn_from_it() -> None:
    model = random_system("word_prediction").double()
    model(model.pairs(Batch.of(PAIRS))).named["words"].sum().backward()
    assert model.encoder.embedding.weight.grad.abs().max() > 0
    assert model.decoder.embedding.weight.grad.abs().max() > 0
    assert model.output.weight.grad is None  # its layers are its own


def test_padding_of_the_source_changes_nothing() -> None:
    model = random_system("word_prediction").double()
    wider = [([4, 5, 6, 7, 5, 8, 9, 10, 4], [5]), *PAIRS]
    together = model(model.pairs(Batch.of(wider))).named["words"]
    alone = model(model.pairs(Batch.of(PAIRS))).named["words"]
    torch.testing.assert_close(together[1:], alone)


def test_autocast_computes_about_the_same() -> None:
    model = random_system("word_prediction")
    pairs = model.pairs(Batch.of(PAIRS))
    expected = model(pairs).named["words"]
    with torch.autocast("cpu", torch.bfloat16):
        found = model(pairs).named["words"]
    assert found.dtype == torch.float32
    torch.testing.assert_close(found, expected, rtol=0.05, atol=0.05)


def test_states_may_have_a_size_of_their_own() -> None:
    predicts = SourceWords(Sizes(VOCABULARY, 3, 4, own_states=6))
    encoded = Encoded(torch.randn(2, 5, 6), (), torch.randn(2, 6))
    assert predicts(encoded, None).shape == (2, VOCABULARY)


def test_folders_keep_it(stored: Callable[..., tuple[Any, Any]]) -> None:
    own = EncDecConfig(embedding_size=6, hidden_size=8)
    model, again = stored(SystemConfig.of(own, WordPredictionConfig(encoder=False, weight=2.0)))
    assert again.config.name == "EncDec+WP"
    assert again.config.addons["word_prediction"] == WordPredictionConfig(encoder=False, weight=2.0)
    pairs = model.pairs(Batch.of(PAIRS))
    for name, loss in model(pairs).named.items():
        assert torch.equal(again(pairs).named[name], loss)
