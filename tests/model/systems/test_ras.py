"""RAS against its equations: one pair at a time, loops over steps and places, float64."""

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
from ledeline.model.initialization import UniformInit, XavierInit
from ledeline.model.layers.dropout import BatchRandom
from ledeline.model.pairs import Sources
from ledeline.model.system_config import SystemConfig
from ledeline.model.systems.ras import RasConfig, RasLstm
from ledeline.search.step_model import map_tensors
from ledeline.text.profiles import NATURAL
from ledeline.text.subwords import Subwords
from ledeline.text.tokenizer import Tokenizer
from ledeline.train.optimizers import SgdConfig
from ledeline.train.schedules import PlateauSchedule
from ledeline.train.train_config import TrainConfig
from model_reference import BOS, EOS, below, sigmoid, softmax, weights_of
from systems import random_system

PAIRS = [([4, 5, 6, 7, 5, 8], [4, 6]), ([8, 9, 4], [9]), ([10], [6, 7, 5])]


def ras(*names: str, **keys: Any) -> Any:
    config = RasConfig(**{"embedding_size": 3, "hidden_size": 4, **keys})
    return random_system(*names, system=config).double()


# --- the reference --------------------------------------------------------------------------------


def encode(weights, source, width):
    """The words x_i, and their keys z_i."""
    words = [weights["embedding.weight"][word] for word in source]
    table, filters = weights["positions.table.weight"], weights["convolution.weight"]
    placed = [word + table[min(i, len(table) - 1)] for i, word in enumerate(words)]
    keys = []
    for i in range(len(source)):
        key = np.zeros(len(filters))
        for k in range(len(filters)):
            for h in range(-(width // 2), width // 2 + 1):
                if 0 <= i + h < len(source):
                    key[k] += placed[i + h] @ filters[k, :, h + width // 2]
        keys.append(key)
    return words, keys


def elman(weights, seen, cell):
    return sigmoid(weights["mix.weight"] @ seen), cell


def lstm(weights, seen, cell):
    in_gate, forget, candidate, out_gate = np.split(weights["gates.weight"] @ seen, 4)
    cell = cell * sigmoid(forget) + sigmoid(in_gate) * np.tanh(candidate)
    return cell * sigmoid(out_gate), cell


def see(model, source, headline):
    """[h_t; c_t], alpha_t and the distribution, of all steps."""
    own, weights = model.config.system, weights_of(model)
    words, keys = encode(below(weights, "encoder."), source, own.width)
    unit = {"elman": elman, "lstm": lstm}[own.cell]
    vector = weights.get("following.vector", 0.0)
    hidden, cell, looked = (
        np.zeros(own.hidden_size),
        np.zeros(own.hidden_size),
        np.zeros(len(source)),
    )
    states, alphas, distributions = [], [], []
    for word in [BOS, *headline]:
        alpha = softmax(
            [(key + weight * vector) @ hidden for key, weight in zip(keys, looked, strict=True)]
        )
        looked = looked + alpha
        context = sum(weight * value for weight, value in zip(alpha, words, strict=True))
        seen = np.concatenate([weights["decoder.embedding.weight"][word], hidden, context])
        hidden, cell = unit(below(weights, "decoder.cell."), seen, cell)
        states.append(np.concatenate([hidden, context]))
        alphas.append(alpha)
        scores = weights["output.weight"] @ states[-1] + weights["output.bias"]
        distributions.append(softmax(scores))
    return np.array(states), np.array(alphas), np.array(distributions)


def logs(distributions, headline):
    return np.log([one[word] for one, word in zip(distributions, [*headline, EOS], strict=True)])


@pytest.mark.parametrize("cell", ["elman", "lstm"])
@pytest.mark.parametrize("sizes", [(3, 4), (4, 4)])
class TestReference:
    def model(self, cell: str, sizes: tuple[int, int], *names: str) -> Any:
        return ras(*names, cell=cell, embedding_size=sizes[0], hidden_size=sizes[1])

    def test_losses_and_traces(self, cell: str, sizes: tuple[int, int]) -> None:
        model = self.model(cell, sizes)
        pairs = model.pairs(Batch.of(PAIRS))
        losses, seen = model(pairs), model.trace(pairs)
        for row, (source, headline) in enumerate(PAIRS):
            states, alphas, distributions = see(model, source, headline)
            expected, steps = logs(distributions, headline), len(headline) + 1
            found = seen.log_probabilities[row, :steps].detach().numpy()
            np.testing.assert_allclose(found, expected, atol=1e-12)
            assert losses.named["target"][row].item() == pytest.approx(-expected.sum(), abs=1e-11)
            assert losses.headline[row].item() == pytest.approx(-expected.sum(), abs=1e-11)
            attention = seen.attention[row, :steps].detach().numpy()
            np.testing.assert_allclose(attention[:, : len(source)], alphas, atol=1e-12)
            assert not attention[:, len(source) :].any()
            np.testing.assert_allclose(
                seen.states[row, :steps].detach().numpy(), states, atol=1e-12
            )

    def test_steps_of_a_search(self, cell: str, sizes: tuple[int, int]) -> None:
        """Two hypotheses of each source at once, which differ from the second step on."""
        model = self.model(cell, sizes)
        sources = Sources.of(*padded([source for source, _ in PAIRS]))
        ways = ([4, 9, 6], [7, 5, 10])
        state, memory = model.encode(*sources)
        found, state = model.step(torch.full((len(PAIRS), 1), BOS), state, memory)
        state = map_tensors(state, lambda tensor: tensor.repeat_interleave(2, 1))
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
        self, cell: str, sizes: tuple[int, int], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        following.offer(monkeypatch)
        model = self.model(cell, sizes, "following")
        source, headline = PAIRS[0]
        pairs = model.pairs(Batch.of(PAIRS))
        _, alphas, distributions = see(model, source, headline)
        attention = model.trace(pairs).attention[0, :3].detach().numpy()
        np.testing.assert_allclose(attention, alphas, atol=1e-12)
        state, memory = model.encode(pairs.sources, pairs.source_lengths, pairs.source_mask)
        for word, expected in zip([BOS, *headline], distributions, strict=True):
            found, state = model.step(torch.full((len(PAIRS), 1), word), state, memory)
            np.testing.assert_allclose(found[0, 0].detach().numpy(), np.log(expected), atol=1e-11)
        with torch.no_grad():
            model.addons["following"].vector.zero_()
        assert not np.allclose(model.trace(pairs).attention[0, :3].detach().numpy(), alphas)


# --- attention ------------------------------------------------------------------------------------


def without_places(model: Any) -> Any:
    with torch.no_grad():
        model.encoder.positions.table.weight.zero_()
    return model


class TestAttention:
    def test_without_places_and_window_it_is_that_of_plain_embeddings(self) -> None:
        """Test 1 of the specification, with a convolution that changes nothing."""
        model = without_places(ras(embedding_size=4, hidden_size=4, width=1))
        with torch.no_grad():
            model.encoder.convolution.weight.copy_(torch.eye(4).unsqueeze(-1))
        source, headline = PAIRS[0]
        seen = model.trace(model.pairs(Batch.of([(source, headline)])))
        words = model.encoder.embedding.weight[torch.tensor(source)]
        hidden = torch.cat([torch.zeros(1, 4), seen.states[0, :-1, :4]])  # h_0 ... h_{J-1}
        torch.testing.assert_close(seen.attention[0], (hidden @ words.T).softmax(-1))

    @pytest.mark.parametrize("cell", ["elman", "lstm"])
    def test_it_mixes_the_words_alone(self, cell: str) -> None:
        """Test 1 of the specification: c_t is a convex combination of x_i, whatever z_i are."""
        model = ras(cell=cell)
        seen = model.trace(model.pairs(Batch.of([PAIRS[0]])))
        words = model.encoder.embedding.weight[torch.tensor(PAIRS[0][0])]
        assert (seen.attention >= 0).all()
        torch.testing.assert_close(seen.attention.sum(-1), torch.ones(1, 3).double())
        contexts = seen.states[0, :, 4:]
        torch.testing.assert_close(contexts, seen.attention[0] @ words)
        assert ((words.amin(0) <= contexts) & (contexts <= words.amax(0))).all()

    @pytest.mark.parametrize(
        ("width", "has_places", "follows"),
        [(1, False, True), (1, True, False), (5, False, False)],
    )
    def test_only_places_and_window_know_the_order(
        self, width: int, has_places: bool, follows: bool
    ) -> None:
        """Test 2 of the specification: without both, attention is permuted as the source is."""
        model = ras(width=width)
        if not has_places:
            without_places(model)
        (source, headline), order = PAIRS[0], [3, 0, 5, 1, 4, 2]
        permuted = [source[place] for place in order]
        one, other = (
            model.trace(model.pairs(Batch.of([(words, headline)]))) for words in (source, permuted)
        )
        assert torch.allclose(one.attention[..., order], other.attention, atol=1e-12) is follows
        same = torch.allclose(one.log_probabilities, other.log_probabilities, atol=1e-12)
        assert same is follows

    def test_the_first_step_looks_at_all_places_alike(self) -> None:
        model = ras()
        attention = model.trace(model.pairs(Batch.of([PAIRS[0]]))).attention
        torch.testing.assert_close(attention[0, 0], torch.full((6,), 1 / 6).double())
        assert attention[0, 1].max() - attention[0, 1].min() > 1e-3


class TestEncoder:
    def test_the_window_ends_where_the_source_ends(self) -> None:
        """Padding is 0 before the convolution, and no part of the mean, however large it is."""
        encoder = ras().encoder
        with torch.no_grad():
            encoder.embedding.weight[0] = 1e6
        sources, lengths, _ = Sources.of(*padded([source for source, _ in PAIRS]))
        together = encoder(sources, lengths)
        for row, (source, _) in enumerate(PAIRS):
            alone = encoder(torch.tensor([source]))
            keys = together.ends[0][row, : len(source)]
            torch.testing.assert_close(keys, alone.ends[0][0])
            torch.testing.assert_close(together.sentence[row], alone.sentence[0])
            mean = encoder.embedding.weight[torch.tensor(source)].mean(0)
            torch.testing.assert_close(alone.sentence[0], mean)

    def test_the_window_has_its_width(self) -> None:
        """A word changes the keys of the two places to each side, and of no other."""
        encoder = ras().encoder
        sources = torch.tensor([[4, 5, 6, 7, 8, 9, 10], [4, 5, 6, 5, 8, 9, 10]])
        one, other = encoder(sources).ends[0]
        assert (one != other).any(-1).tolist() == [False, True, True, True, True, True, False]

    def test_no_text_is_too_long(self) -> None:
        model = ras(positions=3)
        source, headline = [4] * 9, [5]
        _, alphas, distributions = see(model, source, headline)
        seen = model.trace(model.pairs(Batch.of([(source, headline)])))
        np.testing.assert_allclose(seen.attention[0].detach().numpy(), alphas, atol=1e-12)
        found = seen.log_probabilities[0].detach().numpy()
        np.testing.assert_allclose(found, logs(distributions, headline), atol=1e-12)


class TestCells:
    def test_the_elman_unit_is_a_sigmoid(self) -> None:
        model = ras()
        hidden = model.trace(model.pairs(Batch.of(PAIRS))).states[..., :4]
        assert ((hidden > 0) & (hidden < 1)).all()

    def test_the_lstm_has_no_tanh_on_its_cell(self) -> None:
        """With open gates and candidates of 1, h_t counts the steps."""
        unit = RasLstm(2, 3)
        torch.nn.init.constant_(unit.gates.weight, 100.0)
        hidden = torch.zeros(1, 1, 3)
        cell = unit.start(hidden)
        for step in range(1, 4):
            hidden, cell = unit(torch.ones(1, 1, 2), cell)
            torch.testing.assert_close(hidden, torch.full((1, 1, 3), float(step)))


# --- all of it ------------------------------------------------------------------------------------


@pytest.mark.parametrize("cell", ["elman", "lstm"])
def test_it_learns_pairs_by_heart(cell: str) -> None:
    own = RasConfig(embedding_size=16, hidden_size=16, cell=cell)  # type: ignore[arg-type]
    model = build(SystemConfig.of(own), 11, seed=1, init=XavierInit())
    optimizer = torch.optim.Adam(model.parameters(), 0.03)
    pairs, found = model.pairs(Batch.of(PAIRS)), []
    for _ in range(60):
        optimizer.zero_grad()
        loss = model(pairs).total().mean()
        loss.backward()
        optimizer.step()
        found.append(loss.item())
    assert found[-1] < 0.1 * found[0]


def test_dropout_is_before_the_output_alone() -> None:
    model = ras(dropout=0.5).train()
    assert [one for one in model.modules() if isinstance(one, BatchRandom)] == [model.dropout]
    source, headline = PAIRS[0]
    torch.manual_seed(5)
    loss = model(model.pairs(Batch.of([PAIRS[0]]))).named["target"][0].item()
    torch.manual_seed(5)
    mask = model.dropout.mask((1, 3, 7), model.output.weight)[0].numpy()
    assert set(mask.flatten()) == {0.0, 2.0}
    states, weights = see(model, source, headline)[0] * mask, weights_of(model)
    scores = states @ weights["output.weight"].T + weights["output.bias"]
    expected = logs([softmax(row) for row in scores], headline)
    assert loss == pytest.approx(-expected.sum(), abs=1e-11)


def test_the_defaults_and_the_recipe() -> None:
    config = TrainConfig(data=DataConfig(dataset=Path("d")), system=RasConfig())
    assert config.optimizer == SgdConfig(learning_rate=0.5)
    assert config.schedule == PlateauSchedule(compare_with="previous")
    assert config.init == UniformInit()
    model = build(SystemConfig(system=RasConfig()), 20)
    shapes = {name: tuple(one.shape) for name, one in model.named_parameters()}
    assert shapes["encoder.convolution.weight"] == (512, 512, 5)
    assert shapes["decoder.cell.mix.weight"] == (512, 3 * 512)
    assert shapes["output.weight"] == (20, 2 * 512)


def test_an_even_width_is_refused() -> None:
    with pytest.raises(ConfigError, match="width = 4: must be odd"):
        RasConfig(width=4)


@pytest.mark.parametrize(("cell", "name"), [("elman", "RAS-Elman"), ("lstm", "RAS-LSTM")])
def test_a_model_folder_has_the_same_bits(tmp_path: Path, cell: Any, name: str) -> None:
    tokenizer = Tokenizer(NATURAL, Subwords.learn(dict.fromkeys("abcdefgh", 1), 0))
    config = SystemConfig.of(RasConfig(embedding_size=3, hidden_size=4, cell=cell, width=3))
    model = build(config, tokenizer.vocabulary_size, seed=4).eval()
    write_description(tmp_path, config, tokenizer)
    save_file(model.state_dict(), tmp_path / "model.safetensors")
    loaded = load_model(tmp_path).model.eval()
    assert loaded.config == config
    assert loaded.config.name == name
    pairs = model.pairs(Batch.of(PAIRS))
    assert torch.equal(loaded.trace(pairs).log_probabilities, model.trace(pairs).log_probabilities)
