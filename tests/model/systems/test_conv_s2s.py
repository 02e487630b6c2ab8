"""conv-s2s against a slow reference, and what its paper and its authors' code promise.

Numbers in comments are those of the list of tests in the specification of the system.
"""

from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import save_file
from torch import Tensor, nn
from torch.nn import functional

import conv_s2s_reference as reference
from ledeline.config import DataConfig, SearchConfig
from ledeline.config.section import BadValue
from ledeline.core.errors import ConfigError, ModelError
from ledeline.data.dataset import Batch, padded
from ledeline.inference.headliner import Headliner
from ledeline.model import addons as known_addons
from ledeline.model.addons.sgate import SelectiveGateConfig
from ledeline.model.addons.spm import SourcePrediction, SourcePredictionConfig
from ledeline.model.build import build, refusal
from ledeline.model.format.model_folder import load_model, write_description
from ledeline.model.format.pack import pack
from ledeline.model.gpu.dispatch import kernel_mode
from ledeline.model.initialization import NormalInit
from ledeline.model.layers.dropout import Dropout
from ledeline.model.layers.gated_convolution import GatedConvolution, centred_windows, windows_of
from ledeline.model.layers.multi_step_attention import MultiStepAttention, multi_step_memory
from ledeline.model.layers.scaled_gradient import scale_gradient
from ledeline.model.layers.weight_norm import WeightNormLinear
from ledeline.model.pairs import Pairs, Sources
from ledeline.model.system_config import ADDON_CONFIGS, SystemConfig
from ledeline.model.systems.conv_s2s import ConvS2S, ConvS2SConfig
from ledeline.search import search
from ledeline.text.profiles import NATURAL
from ledeline.text.subwords import BOS, Subwords
from ledeline.text.tokenizer import Tokenizer
from ledeline.train.train_config import TrainConfig
from model_reference import weights_of
from systems import assert_a_beam_carries_states_along, random_system

PAIRS = [([4, 5, 6, 7, 5], [4, 6]), ([8, 9, 4], [9]), ([10, 4, 7], [6, 7, 9, 4])]
SHAPES = [(1, 1), (1, 3), (2, 3), (3, 5), (2, 7)]  # layers, kernel
shapes = pytest.mark.parametrize(("layers", "kernel"), SHAPES)


def small(**keys: Any) -> ConvS2SConfig:
    given = {"embedding_size": 3, "hidden_size": 4, "layers": 2, "positions": 20, "dropout": 0.0}
    return ConvS2SConfig(**given | keys)


def random_model(*names: str, **keys: Any) -> Any:
    return random_system(*names, system=small(**keys)).double()


def fresh(seed: int = 1, vocabulary: int = 50, **keys: Any) -> Any:
    """A model with its first values."""
    return build(SystemConfig.of(ConvS2SConfig(**keys)), vocabulary, seed).eval()


def initialized(module: Any, seed: int = 3) -> Any:
    """A layer alone, with its first values and those of the layers in it."""
    for one in module.modules():
        if isinstance(one, WeightNormLinear):
            with torch.no_grad():
                one.initialize_(torch.Generator().manual_seed(seed))
    return module.double()


def logits_of(model: Any, pairs: Pairs) -> Tensor:
    begun, unrolled = model._follow(pairs)
    del begun
    logits: Tensor = model.output(unrolled.states)
    return logits


# --- the whole forward pass -----------------------------------------------------------------------


class TestReference:
    @shapes
    @pytest.mark.parametrize("names", [(), ("sgate",), ("spm",), ("sgate", "spm")])
    def test_losses_and_traces(self, names: tuple[str, ...], layers: int, kernel: int) -> None:
        model = random_model(*names, layers=layers, kernel=kernel)
        pairs = model.pairs(Batch.of(PAIRS))
        losses, trace = model(pairs), model.trace(pairs)
        for row, (source, headline) in enumerate(PAIRS):
            seen = reference.see(weights_of(model), source, headline)
            steps = len(seen.states)
            named = {"target": seen.target} | ({"source": seen.source} if "spm" in names else {})
            assert {k: v[row].item() for k, v in losses.named.items()} == pytest.approx(named)
            assert losses.headline[row].item() == pytest.approx(seen.headline)
            np.testing.assert_allclose(trace.states[row, :steps].detach(), seen.states, atol=1e-9)
            own = trace.attention[row, :steps, : len(source)].detach()
            np.testing.assert_allclose(own, seen.alphas.mean(0), atol=1e-9)  # the mean over layers

    @pytest.mark.parametrize("names", [(), ("sgate",)])
    def test_steps_of_a_search(self, names: tuple[str, ...]) -> None:
        model = random_model(*names)
        source, headline = PAIRS[2]
        seen = reference.see(weights_of(model), source, headline)
        state, memory = model.encode(torch.tensor([source]))
        for word, expected in zip([BOS, *headline], seen.distributions, strict=True):
            logs, state = model.step(torch.tensor([[word]]), state, memory)
            np.testing.assert_allclose(logs[0, 0].detach().exp(), expected, atol=1e-9)

    def test_dropout_at_embeddings_block_inputs_and_the_output(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """What attention mixes and asks with are the embeddings after dropout."""
        model = random_model(dropout=0.4).train()
        masks: list[np.ndarray] = []
        plain_mask = Dropout.mask

        def recorded(*arguments: Any) -> Tensor | None:
            mask = plain_mask(*arguments)
            assert mask is not None
            masks.append(mask[0].numpy())
            return mask

        monkeypatch.setattr(Dropout, "mask", recorded)
        torch.manual_seed(5)
        losses = model(model.pairs(Batch.of(PAIRS[:1])))
        places = [(side, number) for side in ("encoder", "decoder") for number in range(3)]
        by_place = dict(zip([*places, "output"], masks, strict=True))
        seen = reference.see(weights_of(model), *PAIRS[0], masks=by_place)
        assert losses.named["target"].item() == pytest.approx(seen.target)
        assert seen.target != pytest.approx(reference.see(weights_of(model), *PAIRS[0]).target)


# --- 1, 2: the decoder sees no later word, and all before it --------------------------------------


class TestCausality:
    @shapes
    def test_later_words_change_nothing(self, layers: int, kernel: int) -> None:  # 1
        model = random_model(layers=layers, kernel=kernel).float()
        headline = [4, 5, 6, 7, 8, 9]
        one = logits_of(model, model.pairs(Batch.of([(PAIRS[0][0], headline)])))
        for t in range(len(headline)):
            changed = [*headline[:t], *(13 - word for word in headline[t:])]
            other = logits_of(model, model.pairs(Batch.of([(PAIRS[0][0], changed)])))
            assert torch.equal(one[:, : t + 1], other[:, : t + 1])
            assert not torch.equal(one[:, t + 1], other[:, t + 1])

    @shapes
    @pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float32, 1e-5), (torch.float64, 1e-9)])
    def test_one_step_after_another_is_all_at_once(
        self, layers: int, kernel: int, dtype: torch.dtype, tolerance: float
    ) -> None:  # 1; places go beyond the table, too
        model = random_model(layers=layers, kernel=kernel, positions=5).to(dtype)
        words = torch.tensor([[2, 4, 5, 6, 7, 8, 9, 10], [2, 9, 9, 4, 4, 5, 3, 0]])
        sources = Sources.of(*padded([source for source, _ in PAIRS[:2]]))
        begun = model.begin(*sources)
        states, attention = model.decoder.unroll(words, begun.state, begun.memory)
        state = begun.state
        for j in range(words.shape[1]):
            state, weights = model.decoder.step(words[:, j : j + 1], state, begun.memory)
            seen = state.attentional
            torch.testing.assert_close(seen, states[:, j : j + 1], atol=tolerance, rtol=0)
            torch.testing.assert_close(weights, attention[:, j : j + 1], atol=tolerance, rtol=0)

    @shapes
    def test_steps_may_begin_in_the_middle(self, layers: int, kernel: int) -> None:
        model = random_model(layers=layers, kernel=kernel)
        words = torch.tensor([[2, 4, 5, 6, 7, 8, 9, 10]])
        begun = model.begin(torch.tensor([PAIRS[0][0]]), None, None)
        whole, _ = model.decoder.unroll(words, begun.state, begun.memory)
        state = begun.state
        for j in range(3):
            state, _ = model.decoder.step(words[:, j : j + 1], state, begun.memory)
        rest, _ = model.decoder.unroll(words[:, 3:], state, begun.memory)
        torch.testing.assert_close(rest, whole[:, 3:])

    @shapes
    def test_as_many_outputs_as_words(self, layers: int, kernel: int) -> None:  # 2
        model = random_model(layers=layers, kernel=kernel)
        begun = model.begin(torch.tensor([PAIRS[0][0]]), None, None)
        for num_steps in (1, 2, 3, 9):
            words = torch.full((1, num_steps), 5)
            states, attention = model.decoder.unroll(words, begun.state, begun.memory)
            assert (states.shape, attention.shape) == ((1, num_steps, 3), (1, num_steps, 5))
            assert model.encoder(words).states.shape == (1, num_steps, 3)

    @shapes
    def test_the_first_step_sees_zeros_and_the_start(self, layers: int, kernel: int) -> None:  # 2
        """The columns of a convolution that belong to earlier words are not used."""
        model = random_model(layers=layers, kernel=kernel)
        begun = model.begin(torch.tensor([PAIRS[0][0]]), None, None)
        words = torch.tensor([[BOS, 4]])
        first, second = model.decoder.unroll(words, begun.state, begun.memory)[0][0]
        assert all((one == 0).all() for one in begun.state.inputs)
        for convolution in model.decoder.convolutions:
            normalised, plain = convolution.linear, nn.Linear(kernel * 4, 8, dtype=torch.float64)
            plain.weight.data = normalised.weight.detach()
            plain.weight.data[:, : (kernel - 1) * 4] = 0
            plain.bias = normalised.bias
            convolution.linear = plain
        own_first, own_second = model.decoder.unroll(words, begun.state, begun.memory)[0][0]
        torch.testing.assert_close(own_first, first)
        assert (kernel == 1) == torch.allclose(own_second, second)


# --- 3: source padding ----------------------------------------------------------------------------


class TestPadding:
    @pytest.mark.parametrize("names", [(), ("sgate", "spm")])
    @pytest.mark.parametrize("kernel", [1, 3, 5])
    def test_it_changes_nothing(self, names: tuple[str, ...], kernel: int) -> None:  # 3
        """Whatever stands at padded places, and however many there are."""
        model = random_model(*names, kernel=kernel)
        source, words = [4, 5, 6], torch.tensor([[2, 4, 5]])
        begun = model.begin(torch.tensor([source]), None, None)
        alone, attention = model.decoder.unroll(words, begun.state, begun.memory)
        for filling in ([0], [7, 8, 9, 10], [5] * 9):
            ids = torch.tensor([source + filling])
            mask = torch.arange(ids.shape[1]).unsqueeze(0) < 3
            padded_begun = model.begin(ids, torch.tensor([3]), mask)
            torch.testing.assert_close(padded_begun.encoded.sentence, begun.encoded.sentence)
            torch.testing.assert_close(padded_begun.encoded.states[:, :3], begun.encoded.states)
            assert padded_begun.memory.factor.item() == pytest.approx(np.sqrt(3))
            found, weights = model.decoder.unroll(words, padded_begun.state, padded_begun.memory)
            torch.testing.assert_close(found, alone)
            torch.testing.assert_close(weights[..., :3], attention)
            assert (weights[..., 3:] == 0).all()

    def test_it_has_no_gradient(self) -> None:
        model = random_model()
        lengths, mask = torch.tensor([3]), torch.tensor([[True, True, True, False]])
        begun = model.begin(torch.tensor([[4, 5, 6, 7]]), lengths, mask)
        model.decoder.unroll(torch.tensor([[2, 4]]), begun.state, begun.memory)[0].sum().backward()
        words = model.encoder.embedding.words.weight.grad.abs().sum(1)
        places = model.encoder.embedding.positions.table.weight.grad.abs().sum(1)
        assert [(one > 0).item() for one in words[4:8]] == [True, True, True, False]
        assert [(one > 0).item() for one in places[:4]] == [True, True, True, False]

    def test_a_source_longer_than_the_table_of_places(self) -> None:
        model = random_model("spm", positions=4)
        pair = ([4, 5, 6, 7, 8, 9, 10, 4], [5, 6])  # the SPM has as many steps as the source
        losses, seen = (
            model(model.pairs(Batch.of([pair, *PAIRS]))),
            reference.see(weights_of(model), *pair),
        )
        assert losses.named["target"][0].item() == pytest.approx(seen.target)
        assert losses.named["source"][0].item() == pytest.approx(seen.source)
        (found,) = search(model, *padded([pair[0]]), SearchConfig(beam=3, max_length=9))
        assert found


# --- 4, 6: blocks ---------------------------------------------------------------------------------


class TestBlocks:
    def test_the_gate(self) -> None:  # 4
        block = GatedConvolution(2, 3, 0.0).double()
        weights = block.linear
        nn.init.normal_(weights.direction, generator=torch.Generator().manual_seed(1))
        nn.init.normal_(weights.gain, generator=torch.Generator().manual_seed(2))
        windows = torch.randn(1, 4, 3, 2, dtype=torch.float64)
        with torch.no_grad():
            weights.bias.copy_(torch.tensor([0.5, -0.5, float("inf"), float("-inf")]))
            found, sums = block(windows), weights(windows.flatten(2))
        assert torch.equal(found[..., 0], sums[..., 0])
        assert (found[..., 1] == 0).all()

    def test_a_convolution_is_that_of_torch(self) -> None:
        layer = initialized(GatedConvolution(4, 3, 0.0))
        values = torch.randn(2, 6, 4, dtype=torch.float64)
        weight = layer.linear.weight.view(8, 3, 4).transpose(1, 2)  # (2d, k, d) -> (2d, d, k)
        sums = functional.conv1d(values.transpose(1, 2), weight, padding=1)
        expected = functional.glu(sums, 1).transpose(1, 2)
        torch.testing.assert_close(layer(centred_windows(values, 3)), expected)
        torch.testing.assert_close(layer(windows_of(values, 3)), expected[:, 1:-1])

    def test_without_weights_the_residual_remains(self) -> None:  # 4
        model = random_model(layers=3)
        sources = torch.tensor([PAIRS[0][0]])
        for convolution in model.encoder.convolutions:
            convolution.linear.gain.data.zero_()
            convolution.linear.bias.data.zero_()
        embedded = model.encoder.embedding(sources, torch.arange(5))
        expected = model.encoder.outward(model.encoder.inward(embedded) * 0.5**1.5)
        torch.testing.assert_close(model.encoder(sources).states, expected)

    def test_a_decoder_layer_adds_attention_before_the_residual(self) -> None:
        """Without attention's weights: `(h * sqrt(1/2) + x) * sqrt(1/2)`."""
        model = random_model(layers=1)
        attend, convolution = model.decoder.attentions[0], model.decoder.convolutions[0]
        attend.of_context.gain.data.zero_()
        attend.of_context.bias.data.zero_()
        begun, words = model.begin(torch.tensor([PAIRS[0][0]]), None, None), torch.tensor([[2, 4]])
        x = model.decoder.inward(model.decoder.placed(words, torch.arange(2)))
        hidden = convolution(windows_of(functional.pad(x, (0, 0, 2, 0)), 3))
        expected = model.decoder.outward((hidden * 0.5**0.5 + x) * 0.5**0.5)
        found, _ = model.decoder.unroll(words, begun.state, begun.memory)
        torch.testing.assert_close(found, expected)

    @pytest.mark.parametrize("dropout", [0.0, 0.3])
    def test_the_variance_stays(self, dropout: float) -> None:  # 6
        """From block to block at the start, in training."""
        model = fresh(embedding_size=64, hidden_size=96, layers=6, dropout=dropout).train()
        torch.manual_seed(1)
        stds: dict[str, list[float]] = {"encoder": [], "decoder": []}

        def record(side: str) -> Any:
            return lambda _module, given: stds[side].append(given[0].std().item())

        for side in stds:
            part = getattr(model, side)
            for convolution in part.convolutions:
                convolution.register_forward_pre_hook(record(side))
            part.outward.register_forward_pre_hook(record(side))
        words = torch.randint(4, 50, (16, 30), generator=torch.Generator().manual_seed(1))
        begun = model.begin(words, None, None)
        model.decoder.unroll(words, begun.state, begun.memory)
        for side, found in stds.items():
            assert len(found) == 7
            for before, after in pairwise(found):
                assert 0.5 < after / before < 2, (side, found)


# --- 5: attention ---------------------------------------------------------------------------------


class TestAttention:
    @pytest.mark.parametrize("layers", [1, 3])
    def test_each_layer_has_its_own_and_all_weights_sum_to_one(self, layers: int) -> None:  # 5
        model = random_model(layers=layers)
        seen: list[Tensor] = []
        assert len(model.decoder.attentions) == len(model.decoder.convolutions) == layers
        for attend in model.decoder.attentions:
            attend.register_forward_hook(lambda _module, _given, found: seen.append(found[1]))
        trace = model.trace(model.pairs(Batch.of(PAIRS)))
        assert len(seen) == layers
        for weights in seen:
            torch.testing.assert_close(weights.sum(-1), torch.ones(3, 5, dtype=torch.float64))
        assert len({tuple(weights.flatten().tolist()) for weights in seen}) == layers
        torch.testing.assert_close(trace.attention, sum(seen) / layers)

    def test_the_factor_undoes_the_mean(self) -> None:
        """Even attention to m values of variance 1 has the variance 1/m, and 1 after the factor."""
        generator = torch.Generator().manual_seed(1)
        values = torch.randn(1, 400, 300, generator=generator, dtype=torch.float64)
        memory = multi_step_memory(torch.zeros_like(values), values / 0.5**0.5, None)
        attend = MultiStepAttention(300, 300).double()
        seen: list[Tensor] = []
        attend.of_context.register_forward_pre_hook(lambda _module, given: seen.append(given[0]))
        initialized(attend)
        attend(torch.randn(1, 2, 300, dtype=torch.float64), torch.zeros(1, 2, 300), memory)
        assert seen[0].std().item() == pytest.approx(1, abs=0.1)

    def test_sgate_gates_the_outputs_and_not_the_embeddings(self) -> None:
        model = random_model("sgate")
        begun = model.begin(torch.tensor([PAIRS[0][0]]), None, None)
        gates = model.addons["sgate"].gate_values(begun.encoded)
        keys, embedded = begun.encoded.states * gates, begun.encoded.ends[0]
        torch.testing.assert_close(begun.memory.keys, keys)
        torch.testing.assert_close(begun.memory.states, (keys + embedded) * 0.5**0.5)

    def test_what_follows_attention_is_refused(self, monkeypatch: pytest.MonkeyPatch) -> None:
        class Following(SourcePrediction):
            def attention_keys(self, extra: Any) -> Tensor:
                raise NotImplementedError

        assert refusal(ConvS2S, "coverage") == (
            "attention is computed for all steps at once, in every layer"
        )
        for name in ("coverage", "following"):
            monkeypatch.setitem(known_addons.ADDONS, name, Following)  # type: ignore[arg-type]
            monkeypatch.setitem(ADDON_CONFIGS, name, SourcePredictionConfig)
        with pytest.raises(ConfigError, match=r"coverage.*conv-s2s: attention is computed for all"):
            random_model("coverage")
        model = random_model("following")
        with pytest.raises(
            ModelError, match=r"changes attention .* computed for all steps at once"
        ):
            model(model.pairs(Batch.of(PAIRS)))
        state, memory = model.encode(torch.tensor([[4, 5]]))
        with pytest.raises(ModelError, match="changes attention"):
            model.step(torch.tensor([[BOS]]), state, memory)


# --- 7: weight normalisation, and first values ----------------------------------------------------


class TestWeights:
    def test_the_length_of_a_direction_does_not_matter(self) -> None:  # 7
        model = random_model("spm")
        pairs = model.pairs(Batch.of(PAIRS))
        before = model(pairs).total()
        directions = [p for name, p in model.named_parameters() if name.endswith(".direction")]
        assert len(directions) == 2 * 2 + 2 * 2 + 2 * 2 + 1
        for direction in directions:
            direction.data *= 10
        torch.testing.assert_close(model(pairs).total(), before)

    def test_it_starts_as_the_plain_layer(self) -> None:  # 7
        layer = initialized(WeightNormLinear(7, 5))
        torch.testing.assert_close(layer.weight, layer.direction)
        torch.testing.assert_close(layer.gain, layer.direction.square().sum(1).sqrt())
        values = torch.randn(3, 7, dtype=torch.float64)
        torch.testing.assert_close(layer(values), values @ layer.direction.T)

    def test_every_weight_is_normalised_but_tables(self) -> None:
        names = {name.rpartition(".")[2] for name, _ in fresh(layers=1).named_parameters()}
        assert names == {"direction", "gain", "bias", "weight"}
        tables = [name for name, _ in fresh(layers=1).named_parameters() if "weight" in name]
        assert tables == [
            f"{side}.{table}.weight"
            for side in ("encoder.embedding", "decoder.placed")
            for table in ("words", "positions.table")
        ]

    def test_first_values(self) -> None:
        """Whatever [init] says; the paper writes 1 - p as p."""
        p, f, d = 0.25, 90, 120
        own = ConvS2SConfig(embedding_size=f, hidden_size=d, dropout=p)
        config = SystemConfig.of(own, SelectiveGateConfig())
        model = build(config, 300, 2, NormalInit(std=5.0))
        keep = np.sqrt(1 - p)
        expected = {
            "embedding.words.weight": 0.1,
            "placed.words.weight": 0.1,
            "positions.table.weight": 0.1,
            "inward.direction": keep / np.sqrt(f),
            "linear.direction": 2 * keep / np.sqrt(3 * d),
            "outward.direction": 1 / np.sqrt(d),
            "of_state.direction": 1 / np.sqrt(d),
            "of_context.direction": 1 / np.sqrt(f),
            "output.direction": keep / np.sqrt(f),
            "of_state.weight": 5.0,  # of the add-on
            "of_sentence.weight": 5.0,
        }
        seen = set()
        for name, one in model.named_parameters():
            if one.dim() == 1 and name.endswith("bias"):
                assert (one == 0).all(), name
            elif one.dim() > 1:
                (end,) = (end for end in expected if name.endswith(end))
                assert one.std().item() == pytest.approx(expected[end], rel=0.03), name
                assert abs(one.mean().item()) < 0.05 * expected[end], name
                seen.add(end)
        assert seen == set(expected)

    def test_no_two_layers_start_alike(self) -> None:
        model = fresh(layers=3)
        directions = [p for n, p in model.named_parameters() if n.endswith("linear.direction")]
        assert len({one[0, 0].item() for one in directions}) == len(directions) == 6
        same, other = fresh(layers=3), fresh(seed=2, layers=3)
        assert torch.equal(same.output.direction, model.output.direction)
        assert not torch.equal(other.output.direction, model.output.direction)


# --- 8: the encoder's gradient --------------------------------------------------------------------


class TestGradient:
    def test_values_are_the_same_to_the_last_bit(self) -> None:
        values = torch.randn(50, requires_grad=True)
        same = scale_gradient(values, 1 / 12)
        assert torch.equal(same, values)
        same.sum().backward()
        assert torch.equal(values.grad, torch.full((50,), 1 / 12))

    @pytest.mark.parametrize("layers", [1, 2, 3])
    @pytest.mark.parametrize("names", [(), ("sgate",)])
    def test_the_stack_gets_a_share(self, layers: int, names: tuple[str, ...]) -> None:  # 8
        found = []
        for factor in (None, 1.0, 0.0):
            model = random_model(*names, layers=layers)
            assert model.encoder.gradient_factor == 1 / (2 * layers)
            if factor is not None:
                model.encoder.gradient_factor = factor
            model(model.pairs(Batch.of(PAIRS))).total().sum().backward()
            found.append({name: one.grad for name, one in model.named_parameters()})
        ours, plain, direct = found
        for name, gradient in plain.items():
            expected = gradient
            if name.startswith("encoder."):  # tables: their way into attention's values is direct
                expected = direct[name] + (gradient - direct[name]) / (2 * layers)
                assert (direct[name].abs().max() > 0) == name.startswith("encoder.embedding.")
            torch.testing.assert_close(ours[name], expected, msg=name)

    def test_all_of_it_is_that_of_the_values(self) -> None:
        """But for the encoder, by differences."""
        model = random_model("spm")
        model.encoder.gradient_factor = 1.0
        pairs = model.pairs(Batch.of(PAIRS))
        model(pairs).total().sum().backward()
        for name in ("encoder.inward.direction", "decoder.convolutions.0.linear.gain"):
            weight = model.get_parameter(name)
            place = (0,) * weight.dim()
            totals = []
            with torch.no_grad():
                for change in (1e-6, -2e-6):
                    weight[place] += change
                    totals.append(model(pairs).total().sum().item())
            slope = (totals[0] - totals[1]) / 2e-6
            assert weight.grad[place].item() == pytest.approx(slope, rel=1e-5)

    @pytest.mark.skipif(torch.cuda.is_available(), reason="Triton interprets where there is no GPU")
    def test_the_fused_loss_trains_directions_and_gains(self) -> None:
        """It reads the weight of the output layer, which is computed from them."""
        pytest.importorskip("triton")
        model = random_model("spm").float()
        pairs, found = model.pairs(Batch.of(PAIRS)), []
        for mode in ("plain", "interpreted"):
            model.zero_grad()
            with kernel_mode(mode):  # type: ignore[arg-type]
                model(pairs).total().sum().backward()
            found.append([model.output.direction.grad.clone(), model.output.gain.grad.clone()])
        torch.testing.assert_close(found[1], found[0], rtol=1e-4, atol=1e-4)


# --- 10: order ------------------------------------------------------------------------------------


class TestOrder:
    @pytest.mark.parametrize(("kernel", "has_places"), [(1, False), (1, True), (3, False)])
    def test_only_places_and_wide_kernels_see_it(self, kernel: int, has_places: bool) -> None:  # 10
        model = random_model(kernel=kernel)
        if not has_places:
            model.encoder.embedding.positions.table.weight.data.zero_()
        one, other = (
            model(model.pairs(Batch.of([(source, [4, 6])]))).named["target"].item()
            for source in ([4, 5, 6, 7, 5], [5, 7, 4, 5, 6])
        )
        if kernel == 1 and not has_places:
            assert one == pytest.approx(other, abs=1e-9)
        else:
            assert abs(one - other) > 1e-6


# --- search, settings and model folders -----------------------------------------------------------


@shapes
def test_a_beam_carries_its_states_along(layers: int, kernel: int) -> None:
    model = random_model("sgate", layers=layers, kernel=kernel)
    assert_a_beam_carries_states_along(model, [source for source, _ in PAIRS])


class TestSettings:
    def test_the_published_ones(self) -> None:
        own = ConvS2SConfig()
        assert (own.name, own.title) == ("conv-s2s", "conv-s2s")
        assert (own.layers, own.hidden_size, own.kernel, own.positions) == (6, 256, 3, 1024)
        assert (own.embedding_size, own.dropout) == (256, 0.1)

    @pytest.mark.parametrize("kernel", [2, 4])
    def test_an_even_kernel_is_refused(self, kernel: int) -> None:
        with pytest.raises(BadValue, match=f"kernel = {kernel}: must be odd"):
            ConvS2SConfig(kernel=kernel)

    def test_the_recipe(self) -> None:
        config = TrainConfig(data=DataConfig(dataset=Path("d")), system=ConvS2SConfig())
        optimizer: Any = config.optimizer
        assert (optimizer.name, optimizer.learning_rate) == ("sgd", 0.25)
        assert (optimizer.momentum, optimizer.nesterov) == (0.99, True)
        schedule: Any = config.schedule
        assert (schedule.name, schedule.multiply_by, schedule.keep_lowering) == (
            "plateau",
            0.1,
            True,
        )

    def test_the_number_of_parameters(self) -> None:
        """That of the specification for 30,000 words, in millions; gains are counted, too."""
        model = fresh(vocabulary=30_000)
        found: dict[str, int] = {}
        for name, one in model.named_parameters():
            part = "table" if name.endswith(".weight") else name.split(".")[0]
            found[part] = found.get(part, 0) + one.numel()
        expected = {"table": 15.9, "encoder": 2.5, "decoder": 3.3, "output": 7.7}
        assert {name: number / 1e6 for name, number in found.items()} == pytest.approx(
            expected, abs=0.06
        )


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The folder of a conv-s2s+sGate+SPM, far from its first values."""
    folder = tmp_path / "model"
    folder.mkdir()
    subwords = Subwords.learn(dict.fromkeys("abcdefghijklmnopqrstuvwxyz", 1), 0)
    tokenizer = Tokenizer(NATURAL, subwords)
    own = ConvS2SConfig(embedding_size=12, hidden_size=16, layers=2, kernel=5, positions=30)
    config = SystemConfig.of(own, SelectiveGateConfig(), SourcePredictionConfig(c=3.0))
    write_description(folder, config, tokenizer)
    model, generator = build(config, tokenizer.vocabulary_size, 4), torch.Generator().manual_seed(1)
    for one in model.parameters():
        one.data += 0.1 * torch.randn(one.shape, generator=generator)
    model.get_parameter("output.gain").data *= 4
    save_file(model.state_dict(), folder / "model.safetensors")
    return folder


class TestFolders:
    @pytest.mark.parametrize(
        ("storage", "tolerance"), [("float32", 0.0), ("float16", 0.001), ("int8", 0.02)]
    )
    def test_a_stored_model_is_the_model(
        self, folder: Path, tmp_path: Path, storage: Any, tolerance: float
    ) -> None:
        before = load_model(folder).model.eval()
        packed = load_model(pack([folder], tmp_path / storage, storage).folder).model.eval()
        assert isinstance(packed, ConvS2S)
        assert packed.config == before.config
        pairs = before.pairs(Batch.of(PAIRS))
        with torch.no_grad():
            one, other = logits_of(before, pairs), logits_of(packed, pairs)
        assert one.std() > 0.5
        assert (one - other).std() <= tolerance * one.std()
        assert tolerance == 0 or not torch.equal(one, other)
        for name, weight in packed.state_dict().items():
            if storage == "float32" or (storage == "int8" and weight.dim() == 1):
                assert torch.equal(weight, before.state_dict()[name]), name

    @pytest.mark.filterwarnings("ignore::ledeline.core.errors.EngineWarning")
    def test_it_writes_and_explains(self, folder: Path, tmp_path: Path) -> None:
        packed = pack([folder], tmp_path / "packed", "int8").folder
        headline = Headliner.load(packed, device="cpu")("a b c d e f", beam=4, explain=True)
        assert headline.text
        assert headline.alignment is not None
        assert headline.alignment.spm is not None
