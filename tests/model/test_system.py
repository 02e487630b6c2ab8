"""How a system is put together and how it starts."""

from itertools import combinations

import pytest
import torch

from ledeline.data.dataset import Batch
from ledeline.text.subwords import PAD

PAIRS = [([4, 5, 6, 7, 5], [4, 6]), ([8, 9, 4], [9])]


def shapes(d, h, v):
    """Every parameter of EncDec with two layers, and those of each add-on."""
    base = {
        "encoder.embedding.weight": (v, d),
        "decoder.embedding.weight": (v, d),
        "decoder.first.weight": (4 * h, d + 2 * h),
        "decoder.first.bias": (4 * h,),
        "decoder.upper.0.weight": (4 * h, 2 * h),
        "decoder.upper.0.bias": (4 * h,),
        "decoder.attention.bilinear": (h, h),
        "decoder.attention.mix.weight": (h, 2 * h),
        "output.weight": (v, h),
        "output.bias": (v,),
    }
    for layer, size in enumerate([d, h]):
        for way in ("", "_reverse"):
            base |= {
                f"encoder.layers.{layer}.weight_ih_l0{way}": (4 * h, size),
                f"encoder.layers.{layer}.weight_hh_l0{way}": (4 * h, h),
                f"encoder.layers.{layer}.bias_ih_l0{way}": (4 * h,),
                f"encoder.layers.{layer}.bias_hh_l0{way}": (4 * h,),
            }
    gate = {
        "gate.of_state.weight": (h, h),
        "gate.of_sentence.weight": (h, h),
        "gate.of_sentence.bias": (h,),
    }
    return base, gate, {"spm.output.weight": (v, h), "spm.output.bias": (v,)}


def test_every_parameter(make, system):
    """So attention has no bias, the embeddings are two, and nothing is learned twice."""
    base, gate, spm = shapes(3, 4, 11)
    expected = base | (gate if "sGate" in system else {}) | (spm if "SPM" in system else {})
    model = make(system)
    found = {name: tuple(value.shape) for name, value in model.named_parameters()}
    assert found == expected
    assert set(model.state_dict()) == set(expected)
    assert all(value.requires_grad for value in model.parameters())


def test_the_paper_s_sizes_are_the_defaults(make):
    model = make("EncDec+sGate+SPM", embedding=200, hidden=400, vocabulary=50)
    sizes = model.config.__class__().system
    assert (sizes.embedding_size, sizes.hidden_size, sizes.layers, sizes.dropout) == (
        200,
        400,
        2,
        0.3,
    )
    base, gate, spm = shapes(200, 400, 50)
    found = {name: tuple(value.shape) for name, value in model.named_parameters()}
    assert found == base | gate | spm


class TestSeam:
    def test_embeddings_of_the_two_sides_are_separate(self, make, system):
        model = make(system)
        model(model.pairs(Batch.of([([4, 5, 6], [7])]))).total().sum().backward()
        source, target = model.encoder.embedding.weight.grad, model.decoder.embedding.weight.grad
        assert source.any(1).nonzero().flatten().tolist() == [4, 5, 6]
        read = [2, 7, 3] if "SPM" in system else [2, 7]  # <bos>, the headline, <eos>
        assert target.any(1).nonzero().flatten().tolist() == sorted(read)

    @pytest.mark.parametrize("name", ["EncDec+sGate", "EncDec+sGate+SPM"])
    def test_the_decoder_starts_from_ungated_states(self, make, name):
        gated = make(name)
        plain = make("EncDec", seed=2)
        plain.load_state_dict(
            {key: value for key, value in gated.state_dict().items() if key in plain.state_dict()}
        )
        pairs = plain.pairs(Batch.of(PAIRS))
        inputs = pairs.sources, pairs.source_lengths, pairs.source_mask
        (state, memory, *_), (expected, ungated, *_) = gated.begin(*inputs), plain.begin(*inputs)
        for one, other in zip(
            (*state.hidden, *state.cell), (*expected.hidden, *expected.cell), strict=True
        ):
            assert torch.equal(one, other)
        inside = pairs.source_mask
        share = memory.states[inside] / ungated.states[inside]
        assert ((share > 0) & (share < 1)).all()
        torch.testing.assert_close(memory.keys, memory.states @ gated.decoder.attention.bilinear)

    def test_an_open_gate_is_no_gate(self, make):
        gated, plain = make("EncDec+sGate"), make("EncDec", seed=2)
        with torch.no_grad():
            gated.gate.of_sentence.bias.fill_(100.0)
        plain.load_state_dict(
            {key: value for key, value in gated.state_dict().items() if key in plain.state_dict()}
        )
        pairs = plain.pairs(Batch.of(PAIRS))
        torch.testing.assert_close(gated(pairs).named["target"], plain(pairs).named["target"])

    def test_input_feeding(self, make):
        """The next step reads z_j: without its columns of layer 1 the first step alone is equal."""
        model = make("EncDec", embedding=3, hidden=4)
        pairs = model.pairs(Batch.of([([4, 5, 6, 7], [8, 9])]))
        before = model.trace(pairs).states
        with torch.no_grad():
            model.decoder.first.weight[:, 3:7] = 0
        after = model.trace(pairs).states
        torch.testing.assert_close(after[:, 0], before[:, 0])
        assert not torch.isclose(after[:, 1:], before[:, 1:]).any()

    def test_evaluation_drops_nothing(self, make, system):
        model, plain = make(system, dropout=0.5), make(system)
        pairs = model.pairs(Batch.of(PAIRS))
        assert torch.equal(model(pairs).total(), plain(pairs).total())
        assert torch.equal(model(pairs).total(), model(pairs).total())
        model.train()
        assert not torch.equal(model(pairs).total(), model(pairs).total())


SIZES = {"embedding": 20, "hidden": 30, "vocabulary": 60, "spread": 0.0}


class TestInitialWeights:
    @pytest.mark.parametrize("layers", [1, 2, 3])
    def test_weights_are_uniform(self, make, system, layers):
        model = make(system, layers=layers, **SIZES)
        for name, value in model.named_parameters():
            if value.dim() > 1:
                assert value.abs().max() <= 0.1, name
                assert value.abs().max() > 0.098, name
                assert value.mean().abs() < 0.01, name
                assert abs(value.std() / (0.1 / 3**0.5) - 1) < 0.06, name
        assert (model.decoder.embedding.weight[PAD] != 0).any()

    @pytest.mark.parametrize("layers", [1, 2, 3])
    def test_biases_are_0_but_for_the_forget_gates(self, make, system, layers):
        model = make(system, layers=layers, **SIZES)
        lstm = torch.cat([torch.zeros(30), torch.ones(30), torch.zeros(60)]).double()
        totals = {}
        for name, value in model.named_parameters():
            if value.dim() == 1:
                place = name.replace("bias_ih", "bias").replace("bias_hh", "bias")
                totals[place] = totals.get(place, 0) + value.detach()
        recurrent = {name: one for name, one in totals.items() if len(one) == 120}
        assert len(recurrent) == 2 * layers + layers  # both ways of the encoder; the decoder
        for name, bias in totals.items():
            assert torch.equal(bias, lstm if name in recurrent else torch.zeros_like(bias)), name

    def test_what_two_systems_share_starts_alike(self, make):
        models = [
            make(name, **SIZES)
            for name in ("EncDec", "EncDec+sGate", "EncDec+SPM", "EncDec+sGate+SPM")
        ]
        for one, other in combinations([model.state_dict() for model in models], 2):
            shared = one.keys() & other.keys()
            assert len(shared) >= 26
            assert all(torch.equal(one[name], other[name]) for name in shared)

    def test_another_seed_gives_other_weights(self, make, system):
        first, again, other = (make(system, seed=seed, **SIZES) for seed in (1, 1, 2))
        values = zip(first.parameters(), again.parameters(), other.parameters(), strict=True)
        for one, same, different in values:
            assert torch.equal(one, same)
            if one.dim() > 1:
                assert not torch.isclose(one, different).all(1).any()

    def test_no_two_weights_start_alike(self, make):
        """Each has random numbers of its own, also where the shapes are the same."""
        matrices = [
            value.flatten()[:100]
            for value in make("EncDec+sGate+SPM", **SIZES).parameters()
            if value.dim() > 1
        ]
        for one, other in combinations(matrices, 2):
            assert not torch.isclose(one, other).all()

    def test_it_leaves_torch_s_own_dice_alone_for_what_comes_next(self, make):
        """The weights do not depend on what was drawn before."""
        torch.manual_seed(1)
        one = make("EncDec", **SIZES)
        torch.manual_seed(2)
        other = make("EncDec", **SIZES)
        for name, value in one.state_dict().items():
            assert torch.equal(value, other.state_dict()[name])
