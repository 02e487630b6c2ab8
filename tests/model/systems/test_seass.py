"""SEASS against its equations: one pair at a time, loops over steps and units, float64."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

import following
from ledeline.config import DataConfig
from ledeline.core.errors import ConfigError
from ledeline.data.dataset import Batch, padded
from ledeline.model.build import build
from ledeline.model.format.model_folder import load_model, write_description
from ledeline.model.initialization import XavierInit
from ledeline.model.layers.dropout import BatchRandom
from ledeline.model.pairs import Sources
from ledeline.model.system_config import SystemConfig
from ledeline.model.systems.seass import SeassConfig, maxout
from ledeline.search.step_model import map_tensors
from ledeline.text.profiles import NATURAL
from ledeline.text.subwords import Subwords
from ledeline.text.tokenizer import Tokenizer
from ledeline.train.optimizers import AdamConfig
from ledeline.train.schedules import PlateauSchedule
from ledeline.train.train_config import TrainConfig
from model_reference import BOS, EOS, below, sigmoid, softmax, weights_of
from systems import random_system

PAIRS = [([4, 5, 6, 7, 5], [4, 6]), ([8, 9, 4], [9]), ([10], [6, 7, 5])]
SIZES = {"embedding_size": 3, "hidden_size": 4, "attention_size": 5, "readout_size": 6}


def seass(*names: str, dropout: float = 0.0, **keys: Any) -> Any:
    config = SeassConfig(**{**SIZES, "dropout": dropout, **keys})
    return random_system(*names, system=config).double()


# --- the reference --------------------------------------------------------------------------------


def gru_step(w_ih, w_hh, b_ih, b_hh, value, hidden):
    """One step, unit by unit; rows: all reset gates, update gates, candidates."""
    size, after = len(hidden), np.zeros(len(hidden))
    for unit in range(size):
        reset, update, new = unit, size + unit, 2 * size + unit
        r, z = (
            sigmoid(w_ih[row] @ value + b_ih[row] + w_hh[row] @ hidden + b_hh[row])
            for row in (reset, update)
        )
        n = np.tanh(w_ih[new] @ value + b_ih[new] + r * (w_hh[new] @ hidden + b_hh[new]))
        after[unit] = (1 - z) * n + z * hidden[unit]
    return after


def directions(weights, source):
    """fwd_1 ... fwd_I and bwd_1 ... bwd_I."""
    values = [weights["embedding.weight"][word] for word in source]
    found = []
    for suffix, order in (("", values), ("_reverse", values[::-1])):
        gru = [
            weights[f"layer.{kind}_l0{suffix}"]
            for kind in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
        ]
        hidden, states = np.zeros(gru[1].shape[1]), []
        for value in order:
            hidden = gru_step(*gru, value, hidden)
            states.append(hidden)
        found.append(states)
    return found[0], found[1][::-1]


def encode(weights, source):
    """h'_i of each place, and bwd_1."""
    forward, backward = directions(weights, source)
    sentence, states = np.concatenate([forward[-1], backward[0]]), []
    for one, other in zip(forward, backward, strict=True):
        state = np.concatenate([one, other])
        gate = sigmoid(
            weights["gate.of_state.weight"] @ state
            + weights["gate.of_sentence.weight"] @ sentence
            + weights["gate.of_sentence.bias"]
        )
        states.append(state * gate)
    return states, backward[0]


def attend(weights, query, states, changes):
    energies = []
    for state, change in zip(states, changes, strict=True):
        key = weights["of_state.weight"] @ state + weights["of_state.bias"] + change
        energies.append(
            weights["energy.weight"][0] @ np.tanh(weights["of_query.weight"] @ query + key)
        )
    alpha = softmax(energies)
    return sum(weight * state for weight, state in zip(alpha, states, strict=True)), alpha


def decode(weights, words, states, backward, query, vector=0.0):
    """m_t and alpha_t of each step; the vector is that of the add-on `following`."""
    hidden = np.tanh(weights["first.weight"] @ backward + weights["first.bias"])
    context, looked, found = np.zeros(len(states[0])), np.zeros(len(states)), []
    cell = [weights[f"cell.{kind}"] for kind in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")]
    for word in words:
        embedded, before = weights["embedding.weight"][word], hidden
        hidden = gru_step(*cell, np.concatenate([embedded, context]), before)
        asked = hidden if query == "current" else before
        changes = [weight * vector for weight in looked]
        context, alpha = attend(below(weights, "attention."), asked, states, changes)
        looked = looked + alpha
        seen = np.concatenate([embedded, context, hidden])
        read = weights["readout.weight"] @ seen + weights["readout.bias"]
        m = np.array([max(read[2 * k], read[2 * k + 1]) for k in range(len(read) // 2)])
        found.append((m, alpha))
    return [np.array(part) for part in zip(*found, strict=True)]


def see(model, source, headline, *, mask=1.0):
    """m, alpha, and the distributions of all steps."""
    weights = weights_of(model)
    states, backward = encode(below(weights, "encoder."), source)
    vector = weights.get("following.vector", 0.0)
    query = model.config.system.query
    m, alphas = decode(
        below(weights, "decoder."), [BOS, *headline], states, backward, query, vector
    )
    scores = (m * mask) @ weights["output.weight"].T + weights["output.bias"]
    return m, alphas, np.array([softmax(row) for row in scores])


def logs(distributions, headline):
    return np.log([one[word] for one, word in zip(distributions, [*headline, EOS], strict=True)])


@pytest.mark.parametrize("query", ["current", "previous"])
class TestReference:
    def test_losses_and_traces(self, query: str) -> None:
        model = seass(query=query)
        pairs = model.pairs(Batch.of(PAIRS))
        losses, seen = model(pairs), model.trace(pairs)
        for row, (source, headline) in enumerate(PAIRS):
            m, alphas, distributions = see(model, source, headline)
            expected, steps = logs(distributions, headline), len(headline) + 1
            found = seen.log_probabilities[row, :steps].detach().numpy()
            np.testing.assert_allclose(found, expected, atol=1e-12)
            assert losses.named["target"][row].item() == pytest.approx(-expected.sum(), abs=1e-11)
            assert losses.headline[row].item() == pytest.approx(-expected.sum(), abs=1e-11)
            attention = seen.attention[row, :steps].detach().numpy()
            np.testing.assert_allclose(attention[:, : len(source)], alphas, atol=1e-12)
            assert not attention[:, len(source) :].any()
            np.testing.assert_allclose(seen.states[row, :steps].detach().numpy(), m, atol=1e-12)

    def test_steps_of_a_search(self, query: str) -> None:
        """Two hypotheses of each source at once, which differ from the second step on."""
        model = seass(query=query)
        sources = Sources.of(*padded([source for source, _ in PAIRS]))
        ways = ([4, 9, 6], [7, 5, 10])
        state, memory = model.encode(*sources)
        found, state = model.step(torch.full((len(PAIRS), 1), BOS), state, memory)
        state = twice(state)
        steps = [found.expand(-1, 2, -1)]
        for words in zip(*ways, strict=True):
            found, state = model.step(torch.tensor([words] * len(PAIRS)), state, memory)
            steps.append(found)
        for row, (source, _) in enumerate(PAIRS):
            for k, way in enumerate(ways):
                _, _, expected = see(model, source, way)
                ours = torch.stack([one[row, k] for one in steps]).detach().numpy()
                np.testing.assert_allclose(ours, np.log(expected), atol=1e-11)

    def test_with_an_add_on_that_follows_attention(
        self, query: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        following.offer(monkeypatch)
        model = seass("following", query=query)
        source, headline = PAIRS[0]
        pairs = model.pairs(Batch.of(PAIRS))
        _, alphas, distributions = see(model, source, headline)
        seen = model.trace(pairs)
        np.testing.assert_allclose(seen.attention[0, :3].detach().numpy(), alphas, atol=1e-12)
        state, memory = model.encode(pairs.sources, pairs.source_lengths, pairs.source_mask)
        for word, expected in zip([BOS, *headline], distributions, strict=True):
            found, state = model.step(torch.full((len(PAIRS), 1), word), state, memory)
            np.testing.assert_allclose(found[0, 0].detach().numpy(), np.log(expected), atol=1e-11)
        with torch.no_grad():
            model.addons["following"].vector.zero_()
        assert not np.allclose(model.trace(pairs).attention[0, :3].detach().numpy(), alphas)


def twice(state: Any) -> Any:
    """A state with one hypothesis of each source -> the same hypothesis two times."""
    return map_tensors(state, lambda tensor: tensor.repeat_interleave(2, 1))


def test_the_two_queries_differ() -> None:
    one, other = seass(query="current"), seass(query="previous")
    other.load_state_dict(one.state_dict())
    pairs = one.pairs(Batch.of(PAIRS))
    assert not torch.allclose(one.trace(pairs).attention, other.trace(pairs).attention)


# --- the gate -------------------------------------------------------------------------------------


def force_gate(model: Any, value: float) -> None:
    """All values of the gate 0 or 1, by its bias."""
    with torch.no_grad():
        model.encoder.gate.of_sentence.bias.fill_(1e4 if value else -1e4)


class TestGate:
    def test_an_open_gate_is_none(self) -> None:
        """Test 1 of the specification: bit for bit."""
        model = seass()
        force_gate(model, 1)
        pairs = model.pairs(Batch.of(PAIRS))
        gated = model.trace(pairs)
        model.encoder.forward = model.encoder.ungated
        plain = model.trace(pairs)
        assert torch.equal(gated.log_probabilities, plain.log_probabilities)
        assert torch.equal(gated.states, plain.states)

    def test_a_closed_gate_leaves_nothing_to_look_at(self) -> None:
        """Test 1 of the specification: c_t = 0, and all places that are none of padding alike."""
        model = seass()
        force_gate(model, 0)
        pairs = model.pairs(Batch.of(PAIRS))
        begun = model.begin(pairs.sources, pairs.source_lengths, pairs.source_mask)
        state = begun.state
        for j in range(3):
            state, alpha = model.decoder.step(pairs.previous[:, j : j + 1], state, begun.memory)
            assert not state.context.any()
            for row, (source, _) in enumerate(PAIRS):
                expected = [1 / len(source)] * len(source) + [0.0] * (5 - len(source))
                assert alpha[row, 0].tolist() == pytest.approx(expected, abs=1e-15)

    def test_its_values_depend_on_the_whole_sentence(self) -> None:
        """Test 2 of the specification."""
        encoder = seass().encoder
        encoded = encoder.ungated(torch.tensor([[4, 5, 6, 7]]))
        gate = encoder.gate.gate_values(encoded)
        assert gate.shape == (1, 4, 4)
        assert ((gate > 0) & (gate < 1)).all()
        other = encoder.ungated(torch.tensor([[8, 5, 6, 7]]))
        local = encoded._replace(sentence=other.sentence)  # as if no state had seen x_1
        assert (encoder.gate.gate_values(local)[:, -1] != gate[:, -1]).all()

    def test_padding_changes_nothing(self) -> None:
        """Test 3 of the specification: s has fwd at the last real word and bwd at the first."""
        model = seass()
        sources, lengths, _ = Sources.of(*padded([source for source, _ in PAIRS]))
        together = model.encoder.ungated(sources, lengths)
        gates = model.encoder.gate.gate_values(together)
        losses = model(model.pairs(Batch.of(PAIRS)))
        for row, (source, headline) in enumerate(PAIRS):
            alone = model.encoder.ungated(torch.tensor([source]))
            states = alone.states[0]
            ends = torch.cat([states[-1, :2], states[0, 2:]])
            torch.testing.assert_close(alone.sentence[0], ends)
            torch.testing.assert_close(together.sentence[row], ends)
            gate = model.encoder.gate.gate_values(alone)[0]
            torch.testing.assert_close(gates[row, : len(source)], gate)
            loss = model(model.pairs(Batch.of([(source, headline)]))).named["target"][0]
            torch.testing.assert_close(losses.named["target"][row], loss)

    def test_it_learns(self) -> None:
        """Test 7 of the specification."""
        model = seass()
        model(model.pairs(Batch.of(PAIRS))).total().sum().backward()
        for parameter in model.encoder.gate.parameters():
            assert (parameter.grad.abs() > 1e-9).float().mean() > 0.9

    def test_a_second_one_is_refused(self) -> None:
        with pytest.raises(
            ConfigError,
            match=r"\[sgate\] does not go with the system seass: it has the selective gate already",
        ):
            seass("sgate")


# --- the decoder ----------------------------------------------------------------------------------


class TestMaxout:
    """Test 4 of the specification."""

    def test_it_takes_the_larger_of_two_neighbours(self) -> None:
        values = torch.tensor([[1.0, 2.0, -3.0, -4.0, 0.0, 5.0]])
        assert maxout(values).tolist() == [[2.0, -3.0, 5.0]]

    def test_one_of_two_gets_the_gradient(self) -> None:
        values = torch.tensor([1.0, 2.0, -3.0, -4.0, 7.0, 7.0], requires_grad=True)
        (maxout(values) * torch.tensor([2.0, 3.0, 4.0])).sum().backward()
        assert values.grad is not None
        assert values.grad[:4].tolist() == [0.0, 2.0, 3.0, 0.0]
        assert sorted(values.grad[4:].tolist()) == [0.0, 4.0]


def test_the_decoder_starts_from_the_backward_end_alone() -> None:
    """Test 5 of the specification: fwd_I may be anything, and so may the gate."""
    model = seass()
    sources = torch.tensor([[4, 5, 6]])
    before = model.decoder.start(model.encoder(sources))
    with torch.no_grad():
        model.encoder.layer.weight_ih_l0 += 1.0
    force_gate(model, 0)
    changed = model.encoder(sources)
    assert torch.equal(model.decoder.start(changed).hidden, before.hidden)
    assert not before.context.any()
    with torch.no_grad():
        model.encoder.layer.weight_ih_l0_reverse += 1.0
    assert not torch.allclose(model.decoder.start(model.encoder(sources)).hidden, before.hidden)


def test_the_context_of_the_step_before_is_fed() -> None:
    model = seass()
    begun = model.begin(torch.tensor([[4, 5, 6]]), None, None)
    words = torch.tensor([[4]])
    one, _ = model.decoder.step(words, begun.state, begun.memory)
    fed = begun.state._replace(context=begun.state.context + 1)
    other, _ = model.decoder.step(words, fed, begun.memory)
    assert not torch.allclose(one.hidden, other.hidden)


class TestDropout:
    def test_nothing_but_the_readout_is_dropped(self) -> None:
        """The loss is that of the reference with the one mask on m_t."""
        model = seass(dropout=0.5).train()
        assert [one for one in model.modules() if isinstance(one, BatchRandom)] == [model.dropout]
        source, headline = PAIRS[0]
        pairs = model.pairs(Batch.of([PAIRS[0]]))
        torch.manual_seed(5)
        loss = model(pairs).named["target"][0].item()
        torch.manual_seed(5)
        mask = model.dropout.mask((1, 3, 3), model.output.weight)[0].numpy()
        assert set(mask.flatten()) == {0.0, 2.0}
        _, _, distributions = see(model, source, headline, mask=mask)
        assert loss == pytest.approx(-logs(distributions, headline).sum(), abs=1e-11)

    def test_nothing_is_dropped_in_a_search(self) -> None:
        model = seass(dropout=0.5)
        pairs = model.pairs(Batch.of(PAIRS))
        assert torch.equal(
            model.trace(pairs).log_probabilities, model.trace(pairs).log_probabilities
        )


# --- all of it ------------------------------------------------------------------------------------


def test_it_learns_pairs_by_heart() -> None:
    config = SystemConfig.of(SeassConfig(embedding_size=8, hidden_size=16, dropout=0.0))
    model = build(config, 11, seed=1, init=XavierInit(distribution="normal"))
    optimizer = torch.optim.Adam(model.parameters(), 0.01)
    pairs, found = model.pairs(Batch.of(PAIRS)), []
    for _ in range(40):
        optimizer.zero_grad()
        loss = model(pairs).total().mean()
        loss.backward()
        optimizer.step()
        found.append(loss.item())
    assert found[-1] < 0.1 * found[0]


def test_the_defaults_are_the_published_setting() -> None:
    model = build(SystemConfig(system=SeassConfig()), 20)
    shapes = {name: tuple(one.shape) for name, one in model.named_parameters()}
    assert shapes["encoder.layer.weight_hh_l0"] == (3 * 256, 256)
    assert shapes["encoder.gate.of_state.weight"] == (512, 512)
    assert shapes["decoder.first.weight"] == (512, 256)
    assert shapes["decoder.cell.weight_ih"] == (3 * 512, 300 + 512)
    assert shapes["decoder.attention.of_state.weight"] == (512, 512)
    assert shapes["decoder.readout.weight"] == (512, 300 + 512 + 512)
    assert shapes["output.weight"] == (20, 256)


def test_the_recipe_is_the_published_one() -> None:
    config = TrainConfig(data=DataConfig(dataset=Path("d")), system=SeassConfig())
    assert config.optimizer == AdamConfig(learning_rate=0.001)
    assert config.schedule == PlateauSchedule()
    assert config.init == XavierInit(gain=math.sqrt(3), distribution="normal")
    model = build(SystemConfig(system=config.system), 500, init=config.init)
    weight = model.state_dict()["output.weight"]
    assert float(weight.std()) == pytest.approx(math.sqrt(6 / (500 + 256)), rel=0.02)


@pytest.mark.parametrize("key", ["hidden_size", "readout_size"])
def test_odd_sizes_are_refused(key: str) -> None:
    with pytest.raises(ConfigError, match=f"{key} = 7: must be even"):
        SeassConfig(**{key: 7})


def test_a_model_folder_has_the_same_bits(tmp_path: Path) -> None:
    tokenizer = Tokenizer(NATURAL, Subwords.learn(dict.fromkeys("abcdefgh", 1), 0))
    config = SystemConfig.of(SeassConfig(**SIZES, query="previous"))
    model = build(config, tokenizer.vocabulary_size, seed=4).eval()
    write_description(tmp_path, config, tokenizer)
    save_file(model.state_dict(), tmp_path / "model.safetensors")
    loaded = load_model(tmp_path).model.eval()
    assert loaded.config == config
    assert loaded.config.name == "SEASS"
    pairs = model.pairs(Batch.of(PAIRS))
    assert torch.equal(loaded.trace(pairs).log_probabilities, model.trace(pairs).log_probabilities)
