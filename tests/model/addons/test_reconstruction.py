"""Reconstruction: against its equations, one pair at a time, and the tests of its specification."""

from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import save_file
from torch import nn

from ledeline.data.dataset import Batch
from ledeline.inference.engine_weights import refusal
from ledeline.model.addons.reconstruction import ReconstructionConfig
from ledeline.model.build import build
from ledeline.model.format.model_folder import load_model, write_description
from ledeline.model.system_config import ADDON_CONFIGS, SystemConfig
from ledeline.model.systems.encdec import EncDecConfig
from ledeline.model.systems.gru import GruConfig
from ledeline.text.profiles import NATURAL
from ledeline.text.subwords import Subwords
from ledeline.text.tokenizer import Tokenizer
from model_reference import below, see, sigmoid, softmax, weights_of

PAIRS = [([4, 5, 6, 7, 5, 9], [4, 6, 8]), ([8, 9, 4], [9]), ([10, 4, 7, 8], [6, 7, 4, 9, 10])]
ENCDEC = EncDecConfig(embedding_size=3, hidden_size=4, dropout=0.0)
GRU = GruConfig(embedding_size=3, hidden_size=4, dropout=0.0)


def made(*names, system=ENCDEC, vocabulary=11, **keys):
    """A system with reconstruction and these add-ons, all weights random."""
    addons = {name: ADDON_CONFIGS[name]() for name in names}
    addons["reconstruction"] = ReconstructionConfig(**keys)
    model = build(SystemConfig(system=system, addons=addons), vocabulary).double()
    generator = torch.Generator().manual_seed(5)
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.7, generator=generator)
    return model.eval()


# --- the slow reference ---------------------------------------------------------------------------


def gru_step(weights, value, hidden):
    """One step of a GRU, unit by unit; rows: reset, update, candidate."""
    size, after = len(hidden), np.zeros(len(hidden))
    for unit in range(size):
        rows = [gate * size + unit for gate in range(3)]
        seen = [weights["weight_ih"][row] @ value + weights["bias_ih"][row] for row in rows]
        own = [weights["weight_hh"][row] @ hidden + weights["bias_hh"][row] for row in rows]
        reset, update = sigmoid(seen[0] + own[0]), sigmoid(seen[1] + own[1])
        after[unit] = (1 - update) * np.tanh(seen[2] + reset * own[2]) + update * hidden[unit]
    return after


def log_r(weights, table, states, source):
    """log R(x_i) of each word of the source."""
    mean = sum(states) / len(states)
    t = np.tanh(weights["start.weight"] @ mean + weights["start.bias"])
    word, logs = np.zeros(table.shape[1]), []
    for target in source:
        energies = []
        for state in states:
            inner = weights["attention.of_query.weight"] @ t
            inner = inner + weights["attention.of_state.weight"] @ state
            seen = np.tanh(inner + weights["attention.of_state.bias"])
            energies.append(weights["attention.energy.weight"][0] @ seen)
        beta = softmax(energies)
        context = sum(weight * state for weight, state in zip(beta, states, strict=True))
        t = gru_step(below(weights, "cell."), np.concatenate([word, context]), t)
        both = weights["readout.weight"] @ np.concatenate([t, context, word])
        both = np.tanh(both + weights["readout.bias"])
        r = [max(both[2 * unit], both[2 * unit + 1]) for unit in range(len(both) // 2)]
        chances = softmax(weights["output.weight"] @ r + weights["output.bias"])
        logs.append(np.log(chances[target]))
        word = table[target]
    return logs


def reference(model, source, headline):
    """The pair without reconstruction, and log R of its source."""
    weights = weights_of(model)
    base = {name: one for name, one in weights.items() if not name.startswith("reconstruction.")}
    seen = see(base, source, headline, 10.0)
    states = list(seen.attentional[: len(headline) + 1])
    own = below(weights, "reconstruction.")
    return seen, log_r(own, weights["encoder.embedding.weight"], states, source)


@pytest.mark.parametrize("names", [(), ("sgate",), ("spm",), ("sgate", "spm")])
@pytest.mark.parametrize("hidden_size", [0, 5])
def test_losses_and_ranks_are_those_of_the_equations(names, hidden_size):
    model = made(*names, hidden_size=hidden_size, weight=0.7)
    pairs = model.pairs(Batch.of(PAIRS))
    losses, ranks = model(pairs), model.rescore(pairs)
    for row, (source, headline) in enumerate(PAIRS):
        seen, logs = reference(model, source, headline)
        assert losses.named["target"][row].item() == pytest.approx(seen.target, rel=1e-10)
        if "spm" in names:
            assert losses.named["source"][row].item() == pytest.approx(seen.source, rel=1e-10)
        found = losses.named["reconstruction"][row].item()
        assert found == pytest.approx(-0.7 * sum(logs), rel=1e-10)
        assert ranks[row].item() == pytest.approx(0.7 * np.mean(logs), rel=1e-10)


def test_with_coverage_it_sees_the_states_that_coverage_made():
    model, other = made("coverage"), made("coverage")
    with torch.no_grad():
        other.addons["coverage"].of_coverage.weight.zero_()
    pairs = model.pairs(Batch.of(PAIRS))
    one, two = (each(pairs).named["reconstruction"] for each in (model, other))
    assert (one - two).abs().max() > 1e-5


# --- specification, section 7, test 3 -------------------------------------------------------------


@pytest.mark.parametrize("system", [ENCDEC, GRU], ids=["encdec", "gru"])
def test_with_a_weight_of_0_it_is_the_base(system):
    """The same losses and gradients."""
    model = made("spm", system=system, weight=0.0)
    others = {name: one for name, one in model.config.addons.items() if name == "spm"}
    plain = build(SystemConfig(system=system, addons=others), 11).double().eval()
    kept = {name: one for name, one in model.state_dict().items() if name in plain.state_dict()}
    plain.load_state_dict(kept)
    pairs = plain.pairs(Batch.of(PAIRS))
    for one in (model, plain):
        one(pairs).total().sum().backward()
    torch.testing.assert_close(model(pairs).total(), plain(pairs).total())
    of_model = dict(model.named_parameters())
    for name, parameter in plain.named_parameters():
        torch.testing.assert_close(of_model[name].grad, parameter.grad, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("system", [ENCDEC, GRU], ids=["encdec", "gru"])
def test_its_loss_trains_the_decoder_but_not_the_output_layer(system):
    model = made(system=system)
    model(model.pairs(Batch.of(PAIRS))).named["reconstruction"].sum().backward()
    assert model.output.weight.grad is None
    assert model.output.bias.grad is None
    for name, parameter in model.named_parameters():
        if not name.startswith("output."):
            assert parameter.grad.abs().max() > 0, name


def test_it_sees_all_states_of_the_headline_and_no_other():
    """No causality is asked of it: each state changes the first word's probability."""
    model = made("spm")
    pairs = model.pairs(Batch.of(PAIRS[:1]))
    begun, unrolled = model._follow(pairs)
    states = unrolled.states.detach().requires_grad_()
    view = model._view(pairs, begun, unrolled._replace(states=states))
    (gradient,) = torch.autograd.grad(model.addons["reconstruction"].loss(view, pairs), states)
    moved = gradient.abs().sum(-1)[0] > 1e-9
    assert moved.tolist() == pairs.headline_mask[0].tolist() == [True] * 4 + [False] * 2


# --- the source embedding -------------------------------------------------------------------------


@pytest.mark.parametrize("system", [ENCDEC, GRU], ids=["encdec", "gru"])
def test_the_embedding_is_the_encoders(system):
    """Its gradient reaches the words that R reads, though the states are cut off."""
    model = made(system=system)
    pairs = model.pairs(Batch.of([([4, 5, 6], [7])]))
    begun, unrolled = model._follow(pairs)
    view = model._view(pairs, begun, unrolled._replace(states=unrolled.states.detach()))
    model.addons["reconstruction"].loss(view, pairs).sum().backward()
    gradient = model.encoder.embedding.weight.grad.abs().sum(-1)
    assert (gradient > 0).nonzero().flatten().tolist() == [4, 5]  # nothing reads the last
    assert model.decoder.embedding.weight.grad is None


def test_without_one_it_is_the_decoders():
    model = made()

    class Hidden(nn.Module):
        def __init__(self, encoder: nn.Module) -> None:
            super().__init__()
            self.inner = encoder

        def forward(self, *given):
            return self.inner(*given)

    pairs = model.pairs(Batch.of(PAIRS))
    with torch.no_grad():
        model.encoder.embedding.weight.copy_(model.decoder.embedding.weight)
        expected = model.rescore(pairs)
        model.encoder = Hidden(model.encoder)
        assert torch.equal(model.rescore(pairs), expected)


# --- ranking --------------------------------------------------------------------------------------


def test_who_does_not_rank_does_not_rescore():
    assert made().rescores
    assert not made(rank=False).rescores
    assert not made(weight=0.0).rescores
    assert not build(SystemConfig(system=ENCDEC), 11).rescores


def test_a_rank_is_the_same_in_any_batch():
    model = made("sgate", "spm")
    together = model.rescore(model.pairs(Batch.of(PAIRS)))
    for row, pair in enumerate(PAIRS):
        torch.testing.assert_close(model.rescore(model.pairs(Batch.of([pair])))[0], together[row])


def test_a_headline_may_be_empty():
    model = made()
    (found,) = model.rescore(model.pairs(Batch.of([([4, 5, 6], [])])))
    _, logs = reference(model, [4, 5, 6], [])
    assert found.item() == pytest.approx(np.mean(logs), rel=1e-10)


def test_an_engine_may_write_with_it():
    """It changes no step."""
    assert refusal(made("sgate", "spm").float()) is None


def test_a_model_folder_holds_it(tmp_path: Path):
    letters = "abcdefghijklmnopqrstuvwxyz"
    tokenizer = Tokenizer(NATURAL, Subwords.learn(dict.fromkeys(letters, 1), 0))
    keys = {"weight": 0.5, "hidden_size": 6}
    model = made("spm", vocabulary=tokenizer.vocabulary_size, **keys).float()
    write_description(tmp_path, model.config, tokenizer)
    save_file(model.state_dict(), tmp_path / "model.safetensors")
    loaded = load_model(tmp_path).model
    assert loaded.config.name == "EncDec+SPM+reconstruction"
    assert loaded.config.addons["reconstruction"] == ReconstructionConfig(**keys)
    pairs = model.pairs(Batch.of(PAIRS))
    with torch.inference_mode():
        assert torch.equal(loaded.rescore(pairs), model.rescore(pairs))
