"""Coverage: against its equations, one pair at a time, and the tests of its specification."""

import copy
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

from ledeline.core.errors import EngineWarning
from ledeline.data.dataset import Batch, padded
from ledeline.inference.headliner import Headliner
from ledeline.model.addons.addon import Addon, AttentionStep, Sizes, View
from ledeline.model.addons.coverage import Coverage, CoverageConfig, NeuralCoverage
from ledeline.model.addons.follower import AddonFollower
from ledeline.model.build import build
from ledeline.model.format.model_folder import load_model, write_description
from ledeline.model.layers.additive_attention import AdditiveAttention
from ledeline.model.pairs import Pairs
from ledeline.model.system_config import ADDON_CONFIGS, SystemConfig
from ledeline.model.systems.encdec import EncDecConfig
from ledeline.model.systems.gru import GruConfig
from ledeline.search import search
from ledeline.text.profiles import NATURAL
from ledeline.text.subwords import Subwords
from ledeline.text.tokenizer import Tokenizer
from model_reference import (
    BOS,
    EOS,
    PAD,
    below,
    distribution,
    encode,
    gated,
    lstm_step,
    sigmoid,
    softmax,
    source_loss,
    weights_of,
)

PAIRS = [([4, 5, 6, 7, 5, 9], [4, 6, 8]), ([8, 9, 4], [9]), ([10, 4, 7], [6, 7])]
KINDS = ("see", "linguistic", "neural")
ENCDEC = EncDecConfig(embedding_size=3, hidden_size=4, dropout=0.0)
GRU = GruConfig(embedding_size=3, hidden_size=4, dropout=0.0)


def made(*names, system=ENCDEC, vocabulary=11, **keys):
    """A system with coverage and these add-ons, all weights random."""
    others = {name: ADDON_CONFIGS[name]() for name in names}
    config = SystemConfig(system=system, addons=others | {"coverage": CoverageConfig(**keys)})
    model, generator = build(config, vocabulary).double(), torch.Generator().manual_seed(5)
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.7, generator=generator)
    return model.eval()


def plain_of(model):
    """The same system without coverage."""
    others = {name: one for name, one in model.config.addons.items() if name != "coverage"}
    plain = build(SystemConfig(system=model.config.system, addons=others), model.vocabulary)
    kept = {name: one for name, one in model.state_dict().items() if name in plain.state_dict()}
    plain.double().load_state_dict(kept)
    return plain.eval()


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


def covered(kind, weights, coverage, alpha, states, query):
    """C after a step, place by place."""
    after = []
    for before, weight, state in zip(coverage, alpha, states, strict=True):
        if kind == "see":
            after.append(before + weight)
        elif kind == "linguistic":
            fertility = 2 * sigmoid(weights["update.of_state.weight"][0] @ state)
            after.append(before + weight / fertility)
        else:
            value = np.concatenate([[weight], state, query])
            after.append(gru_step(below(weights, "update.cell."), value, before))
    return after


def decode(kind, weights, own, words, ends, states):
    """y_0 ... y_{J-1} -> z, alpha, and C before each step; the decoder has two layers."""
    hidden, cell = [list(part) for part in zip(*ends, strict=True)]
    z, size = np.zeros_like(hidden[0]), own["of_coverage.weight"].shape[1]
    coverage, seen = [np.zeros(size) for _ in states], []
    for word in words:
        value = np.concatenate([weights["embedding.weight"][word], z])
        for layer, name in enumerate(("first", "upper.0")):
            hidden[layer], cell[layer] = lstm_step(
                weights[f"{name}.weight"],
                weights[f"{name}.bias"],
                value,
                hidden[layer],
                cell[layer],
            )
            value = hidden[layer]
        scores = [
            state @ weights["attention.bilinear"] @ value
            + value @ own["of_coverage.weight"] @ before
            for state, before in zip(states, coverage, strict=True)
        ]
        alpha = softmax(scores)
        context = sum(weight * state for weight, state in zip(alpha, states, strict=True))
        z = np.tanh(weights["attention.mix.weight"] @ np.concatenate([context, value]))
        seen.append((z, alpha, coverage))
        coverage = covered(kind, own, coverage, alpha, states, value)
    return seen


def reference(kind, weights, source, headline):
    """The losses of a pair, log-probabilities and attention."""
    has_gate = any(name.startswith("gate.") for name in weights)
    has_spm = any(name.startswith("spm.") for name in weights)
    targets = [*headline, EOS]
    if has_spm:
        targets += [PAD] * (len(source) - len(targets))
    encoded = encode(below(weights, "encoder."), source)
    states = gated(below(weights, "gate."), encoded) if has_gate else encoded.states
    own, words = below(weights, "coverage."), [BOS, *targets[:-1]]
    seen = decode(kind, below(weights, "decoder."), own, words, encoded.ends, states)
    logs = [
        np.log(distribution(below(weights, "output."), z)[word])
        for (z, *_), word in zip(seen, targets, strict=True)
    ]
    losses = {"target": -sum(logs)}
    if has_spm:
        z = [one[0] for one in seen]
        losses["source"] = source_loss(below(weights, "spm.output."), z, source, 10.0)
    if kind == "see":
        losses["coverage"] = 0.0
        for _, alpha, before in seen[: len(headline) + 1]:
            losses["coverage"] += sum(min(a, c[0]) for a, c in zip(alpha, before, strict=True))
    return losses, logs, np.array([alpha for _, alpha, _ in seen])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("names", [(), ("sgate",), ("spm",), ("sgate", "spm")])
def test_losses_and_traces_are_those_of_the_equations(kind, names):
    model = made(*names, kind=kind, size=3)
    losses = model(model.pairs(Batch.of(PAIRS)))
    seen = model.trace(model.pairs(Batch.of(PAIRS)))
    for row, (source, headline) in enumerate(PAIRS):
        expected, logs, alphas = reference(kind, weights_of(model), source, headline)
        assert expected.keys() == losses.named.keys() == set(model.loss_names)
        for name, value in expected.items():
            assert losses.named[name][row].item() == pytest.approx(value, rel=1e-10), name
        found = seen.log_probabilities[row, : len(logs)].detach().numpy()
        np.testing.assert_allclose(found, logs, rtol=1e-10)
        found = seen.attention[row, : len(logs), : len(source)].detach().numpy()
        np.testing.assert_allclose(found, alphas, rtol=1e-9)


# --- specification, section 7, test 1 -------------------------------------------------------------


def test_before_step_t_the_coverage_of_a_source_sums_to_t_minus_1():
    model = made(kind="see")
    sources, lengths = padded([source for source, _ in PAIRS])
    mask = torch.from_numpy(np.arange(sources.shape[1]) < lengths[:, None])
    state, memory = model.encode(torch.from_numpy(sources), torch.from_numpy(lengths), mask)
    for step in range(5):
        (coverage,) = state.extras
        torch.testing.assert_close(coverage.sum((1, 2, 3)), torch.full((3,), float(step)).double())
        assert (coverage[~mask.unsqueeze(1)] == 0).all()  # padding is never looked at
        _, state = model.step(torch.full((3, 1), 4 + step), state, memory)


def covloss(attention, lengths=None, weight=1.0):
    """The loss of attention (B, J, I) over headlines of these lengths, with <eos>."""
    batch, steps, length = attention.shape
    lengths = lengths or [steps] * batch
    pairs = Pairs.of(
        Batch.of([([4] * length, [5] * (one - 1)) for one in lengths]), np.array(lengths), steps
    )
    addon = Coverage(CoverageConfig(weight=weight), Sizes(11, 3, 4))
    view = View(torch.zeros(batch, steps, 4), attention, pairs.previous, pairs.sources, None)
    return addon.loss(view, pairs)


def test_the_loss_of_a_step_is_from_0_to_1_and_0_at_the_first():
    generator = torch.Generator().manual_seed(1)
    attention = torch.randn(50, 6, 5, generator=generator).double().mul(3).softmax(-1)
    before = torch.zeros(50).double()
    for steps in range(1, 7):
        loss = covloss(attention[:, :steps])
        if steps == 1:
            assert (loss == 0).all()
        else:
            assert ((loss - before > 0) & (loss - before <= 1 + 1e-12)).all()
        before = loss


def test_a_step_that_looks_where_the_first_looked_costs_1():
    attention = torch.tensor([0.5, 0.2, 0.3]).double().expand(1, 4, 3)
    torch.testing.assert_close(covloss(attention), torch.tensor([3.0]).double())
    torch.testing.assert_close(covloss(attention, weight=0.5), torch.tensor([1.5]).double())


def test_places_looked_at_once_cost_nothing():
    assert covloss(torch.eye(4).double().unsqueeze(0)).item() == 0


def test_steps_after_eos_do_not_count():
    attention = torch.tensor([0.5, 0.2, 0.3]).double().expand(2, 4, 3)
    assert covloss(attention, [2, 4]).tolist() == pytest.approx([1.0, 3.0])


# --- specification, section 7, test 2 -------------------------------------------------------------


def test_linguistic_coverage_with_a_fertility_of_1_is_the_sum():
    linguistic, see = made(kind="linguistic"), made(kind="see")
    with torch.no_grad():
        linguistic.addons["coverage"].update.of_state.weight.zero_()  # Phi = 2 sigmoid(0)
    kept = linguistic.state_dict()
    see.load_state_dict({name: kept[name] for name in see.state_dict()})
    pairs = see.pairs(Batch.of(PAIRS))
    one, other = see.trace(pairs), linguistic.trace(pairs)
    assert torch.equal(one.attention, other.attention)
    assert torch.equal(one.log_probabilities, other.log_probabilities)


@pytest.mark.parametrize("system", [ENCDEC, GRU], ids=["encdec", "gru"])
@pytest.mark.parametrize("kind", KINDS)
def test_without_v_c_it_is_the_base(kind, system):
    model = made("spm", system=system, kind=kind)
    plain = plain_of(model)
    pairs, sources = plain.pairs(Batch.of(PAIRS)), padded([source for source, _ in PAIRS])
    assert not torch.equal(model.trace(pairs).attention, plain.trace(pairs).attention)
    with torch.no_grad():
        model.addons["coverage"].of_coverage.weight.zero_()
        assert torch.equal(model.trace(pairs).attention, plain.trace(pairs).attention)
        assert torch.equal(
            model.trace(pairs).log_probabilities, plain.trace(pairs).log_probabilities
        )
    assert search(model, *sources) == search(plain, *sources)
    for name in ("target", "source"):
        torch.testing.assert_close(
            model(pairs).named[name], plain(pairs).named[name], rtol=1e-12, atol=1e-12
        )


# --- attention ------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_additive_attention_has_the_published_energy(kind):
    """`v^T tanh(W q + U h_i + V_c C_i + b)`, with K hypotheses, two steps."""
    generator = torch.Generator().manual_seed(2)
    sizes = Sizes(11, 3, 4, own_states=5, own_keys=6, own_queries=7)
    attention, addon = AdditiveAttention(7, 5, 6), Coverage(CoverageConfig(kind=kind), sizes)
    for parameter in (*attention.parameters(), *addon.parameters()):
        torch.nn.init.normal_(parameter, generator=generator)
    attention, addon = attention.double(), addon.double()
    states = torch.randn(1, 3, 5, generator=generator).double()
    queries = torch.randn(2, 1, 2, 7, generator=generator).double()
    memory = attention.memory_of(states)
    follower = AddonFollower(addon, 0, memory, (torch.zeros(1, 2, 3, addon.size).double(),))
    found = [attention(one, memory, follower)[1].detach().numpy()[0] for one in queries]
    base, own = weights_of(attention), weights_of(addon)
    for k in range(2):
        coverage = [np.zeros(addon.size) for _ in range(3)]
        for step in range(2):
            query, scores = queries[step, 0, k].numpy(), []
            for state, before in zip(states[0].numpy(), coverage, strict=True):
                key = base["of_state.weight"] @ state + base["of_state.bias"]
                key = key + own["of_coverage.weight"] @ before
                seen = np.tanh(base["of_query.weight"] @ query + key)
                scores.append(base["energy.weight"][0] @ seen)
            alpha = softmax(scores)
            np.testing.assert_allclose(found[step][k], alpha, rtol=1e-10)
            coverage = covered(kind, own, coverage, alpha, states[0].numpy(), query)


def test_scores_are_changed_without_making_keys():
    addon = Coverage(CoverageConfig(kind="neural", size=3), Sizes(11, 3, 4)).double()
    torch.nn.init.normal_(addon.of_coverage.weight)
    extra, queries = torch.randn(2, 5, 6, 3).double(), torch.randn(2, 5, 4).double()
    expected = Addon.attention_scores(addon, extra, queries)  # by way of the keys
    torch.testing.assert_close(addon.attention_scores(extra, queries), expected)


def test_the_neural_kind_is_a_gru_over_the_whole_input():
    update = NeuralCoverage(5, 7, 3).double()
    coverage, weights = torch.randn(2, 4, 6, 3).double(), torch.rand(2, 4, 6).double()
    values, queries = torch.randn(2, 6, 5).double(), torch.randn(2, 4, 7).double()
    whole = torch.cat(
        [
            weights.unsqueeze(-1),
            values.unsqueeze(1).expand(-1, 4, -1, -1),
            queries.unsqueeze(2).expand(-1, -1, 6, -1),
        ],
        -1,
    )
    expected = update.cell(whole.flatten(0, 2), coverage.flatten(0, 2)).view_as(coverage)
    found = update(coverage, AttentionStep(queries, weights, values))
    torch.testing.assert_close(found, expected)


# --- search and training --------------------------------------------------------------------------


@pytest.mark.parametrize("system", [ENCDEC, GRU], ids=["encdec", "gru"])
@pytest.mark.parametrize("kind", KINDS)
def test_the_state_follows_the_beam(kind, system):
    """All hypotheses of a search have their forced score."""
    model = made("sgate", "spm", system=system, kind=kind)
    found = search(model, *padded([source for source, _ in PAIRS]))
    for (source, _), hypotheses in zip(PAIRS, found, strict=True):
        assert hypotheses
        for one in hypotheses:
            pairs = model.pairs(Batch.of([(source, list(one.ids))]))
            steps = len(one.ids) + (not one.truncated)
            forced = model.trace(pairs).log_probabilities[0, :steps].sum().item()
            assert -one.cost == pytest.approx(forced, abs=1e-9)


@pytest.mark.parametrize("kind", KINDS)
def test_a_pair_is_the_same_in_any_batch(kind):
    model = made("spm", kind=kind)
    together = model(model.pairs(Batch.of(PAIRS))).total()
    for row, pair in enumerate(PAIRS):
        torch.testing.assert_close(model(model.pairs(Batch.of([pair]))).total()[0], together[row])


@pytest.mark.parametrize("kind", KINDS)
def test_gradients_are_those_of_differences(kind):
    """Of V_c, of the update and of attention: through all steps."""
    model, step = made("sgate", kind=kind), 1e-6
    pairs = model.pairs(Batch.of(PAIRS))
    model(pairs).total().sum().backward()
    for parameter in [*model.addons["coverage"].parameters(), model.decoder.attention.bilinear]:
        gradient, values = parameter.grad.flatten(), parameter.data.view(-1)
        place = int(gradient.abs().argmax())
        assert gradient[place].abs() > 1e-6
        with torch.no_grad():
            values[place] += step
            more = model(pairs).total().sum()
            values[place] -= 2 * step
            less = model(pairs).total().sum()
            values[place] += step
        assert gradient[place].item() == pytest.approx(
            ((more - less) / (2 * step)).item(), rel=1e-4, abs=1e-8
        )


def test_with_a_weight_of_0_attention_still_sees_it():
    one, none = made(weight=1.0), made(weight=0.0)
    pairs = one.pairs(Batch.of(PAIRS))
    assert (one(pairs).named["coverage"] > 0).all()
    assert (none(pairs).named["coverage"] == 0).all()
    assert torch.equal(one(pairs).named["target"], none(pairs).named["target"])


@pytest.mark.parametrize("kind", ["linguistic", "neural"])
def test_only_see_has_a_loss(kind):
    assert made(kind=kind).loss_names == ("target",)
    assert made(kind="see").loss_names == ("target", "coverage")


@pytest.mark.parametrize("kind", KINDS)
def test_a_model_folder_holds_it(tmp_path: Path, kind):
    letters = "abcdefghijklmnopqrstuvwxyz"
    tokenizer = Tokenizer(NATURAL, Subwords.learn(dict.fromkeys(letters, 1), 0))
    model = made("spm", kind=kind, vocabulary=tokenizer.vocabulary_size).float()
    write_description(tmp_path, model.config, tokenizer)
    save_file(copy.copy(model.state_dict()), tmp_path / "model.safetensors")
    loaded = load_model(tmp_path).model
    assert loaded.config.name == "EncDec+SPM+coverage"
    assert loaded.config.addons["coverage"].kind == kind
    pairs = model.pairs(Batch.of(PAIRS))
    with torch.inference_mode():
        assert torch.equal(
            loaded.trace(pairs).log_probabilities, model.trace(pairs).log_probabilities
        )
    with pytest.warns(EngineWarning, match="does not know the add-on coverage"):
        headliner = Headliner.load(tmp_path, device="cpu")
    assert headliner("a b c d e f", beam=4).text


@pytest.mark.parametrize("kind", KINDS)
def test_a_new_system_starts_as_without_it_and_learns_it(kind):
    config = SystemConfig(system=ENCDEC, addons={"coverage": CoverageConfig(kind=kind, weight=0)})
    model = build(config, 11, seed=3).double()
    plain = build(SystemConfig(system=ENCDEC), 11, seed=3).double()
    pairs = model.pairs(Batch.of(PAIRS))
    losses = model(pairs).named["target"]
    torch.testing.assert_close(losses, plain(pairs).named["target"])
    losses.sum().backward()
    assert model.coverage.of_coverage.weight.grad.abs().max() > 0
