"""Every part of the model, and each whole system, against the slow reference."""

import numpy as np
import pytest
import torch

from ledeline.data.dataset import Batch
from ledeline.model.addons.spm import source_losses
from ledeline.model.layers.encoder import Encoded, Ends
from ledeline.model.loss import token_losses

CLOSE = 1e-10

# Equal lengths, J + 1 = I, one word each, a source that repeats itself, and (as in a test split) a
# headline too long for its source.
PAIRS = [
    ([4, 5, 6, 7, 5], [4, 6]),
    ([8, 9, 4], [9, 10]),
    ([7, 7, 7, 1, 7], [7]),
    ([10, 4], [6]),
    ([5], [8, 1, 5]),
    ([9, 8, 6, 4, 10], [5, 5, 4, 7]),
]


def close(found: torch.Tensor, expected: object) -> bool:
    return bool(np.allclose(found.detach().numpy(), np.array(expected), rtol=0, atol=CLOSE))


def random(*shape: int, seed: int = 1) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=generator, dtype=torch.float64)


def lengths(pairs):
    return torch.tensor([len(source) for source, _ in pairs])


class TestParts:
    @pytest.mark.parametrize("layers", [1, 2, 3])
    def test_encoder(self, make, reference, layers):
        encoder = make("EncDec", layers=layers).encoder
        weights = reference.weights_of(encoder)
        encoded = encoder(torch.from_numpy(Batch.of(PAIRS).sources), lengths(PAIRS))
        assert len(encoded.ends) == layers
        for row, (source, _) in enumerate(PAIRS):
            expected = reference.encode(weights, source)
            assert close(encoded.states[row, : len(source)], expected.states)
            for ends, (hidden, cell) in zip(encoded.ends, expected.ends, strict=True):
                assert close(ends.hidden[row], hidden)
                assert close(ends.cell[row], cell)

    def test_encoder_without_lengths(self, make, reference):
        encoder = make("EncDec").encoder
        sources = [[4, 5, 6], [10, 4, 4]]
        encoded = encoder(torch.tensor(sources))
        for row, source in enumerate(sources):
            expected = reference.encode(reference.weights_of(encoder), source)
            assert close(encoded.states[row], expected.states)
            assert close(encoded.ends[0].hidden[row], expected.ends[0][0])
            assert close(encoded.ends[1].cell[row], expected.ends[1][1])

    @pytest.mark.parametrize("layers", [1, 3])
    def test_start(self, make, layers):
        decoder = make("EncDec", layers=layers).decoder
        ends = tuple(Ends(random(2, 4, seed=n), random(2, 4, seed=9 + n)) for n in range(layers))
        state = decoder.start(Encoded(random(2, 5, 4), ends, ends[-1].hidden))
        assert [one.shape for one in (*state.hidden, *state.cell, state.attentional)] == [
            (2, 1, 4)
        ] * (2 * layers + 1)
        for number, end in enumerate(ends):
            assert torch.equal(state.hidden[number][:, 0], end.hidden)
            assert torch.equal(state.cell[number][:, 0], end.cell)
        assert not state.attentional.any()

    def test_gate(self, make, reference):
        gate = make("EncDec+sGate").gate
        ends = tuple(Ends(random(2, 4, seed=n), random(2, 4, seed=9 + n)) for n in range(2))
        encoded = Encoded(random(2, 5, 4), ends, ends[-1].hidden)
        gated, gate_values = gate.encoded(encoded), gate.gate_values(encoded)
        assert gated.ends is ends
        assert ((gate_values > 0) & (gate_values < 1)).all()
        assert torch.equal(gated.states, encoded.states * gate_values)
        for row in range(2):
            pairs = [(end.hidden[row].numpy(), end.cell[row].numpy()) for end in ends]
            one = reference.Encoded(encoded.states[row].numpy(), pairs)
            assert close(gated.states[row], reference.gated(reference.weights_of(gate), one))

    def test_attention(self, make, reference):
        attention = make("EncDec").decoder.attention
        states, queries = random(3, 5, 4), random(3, 2, 4, seed=2)
        sizes = [5, 2, 1]
        mask = torch.arange(5) < torch.tensor(sizes).unsqueeze(1)
        found, alphas = attention(queries, attention.memory_of(states, mask))
        weights = reference.weights_of(attention)
        for row, size in enumerate(sizes):
            for k in range(2):
                query, seen = queries[row, k].numpy(), states[row, :size].numpy()
                attentional, alpha = reference.attend(weights, query, seen)
                assert close(found[row, k], attentional)
                assert close(alphas[row, k, :size], alpha)
                assert not alphas[row, k, size:].any()

    @pytest.mark.parametrize("layers", [1, 2, 3])
    def test_decoder(self, make, reference, layers):
        model = make("EncDec", layers=layers)
        decoder = model.decoder
        words = [[2, 5, 6, 3], [2, 8, 3, 0]]
        ends = tuple(Ends(random(2, 4, seed=n), random(2, 4, seed=9 + n)) for n in range(layers))
        encoded = Encoded(random(2, 5, 4), ends, ends[-1].hidden)
        memory = decoder.attention.memory_of(encoded.states)
        found, alphas = decoder.unroll(torch.tensor(words), decoder.start(encoded), memory)
        for row in range(2):
            pairs = [(end.hidden[row].numpy(), end.cell[row].numpy()) for end in ends]
            attentional, alpha = reference.decode(
                reference.weights_of(decoder), words[row], pairs, encoded.states[row].numpy()
            )
            assert close(found[row], attentional)
            assert close(alphas[row], alpha)

    def test_output(self, make, reference):
        model = make("EncDec")
        attentional, targets = random(2, 3, 4), torch.tensor([[4, 3, 0], [10, 1, 2]])
        losses = token_losses(attentional, model.output, targets)
        assert losses.shape == (2, 3)
        weights = reference.weights_of(model.output)
        for row in range(2):
            for j in range(3):
                o = reference.distribution(weights, attentional[row, j].numpy())
                assert close(losses[row, j], -np.log(o[targets[row, j]]))

    def test_spm(self, make, reference):
        model = make("EncDec+SPM", c=7.0)
        weights = reference.weights_of(model.spm.output)
        pairs = model.pairs(Batch.of(PAIRS))
        attentional = random(*pairs.targets.shape, 4)
        q = model.spm.source_predictions(attentional)
        losses = source_losses(attentional, model.spm.output, pairs, model.spm.c)
        assert losses.shape == (len(PAIRS),)
        for row, (source, headline) in enumerate(PAIRS):
            own = attentional[row, : max(len(source), len(headline) + 1)].numpy()
            assert close(q[row, 0], reference.distribution(weights, own[0]))
            assert close(losses[row], reference.source_loss(weights, own, source, 7.0))


class TestSystems:
    @pytest.mark.parametrize("layers", [1, 2, 3])
    def test_losses(self, make, reference, system, layers):
        model = make(system, layers=layers, c=4.0)
        losses = model(model.pairs(Batch.of(PAIRS)))
        weights = reference.weights_of(model)
        seen = [reference.see(weights, *pair, c=4.0) for pair in PAIRS]
        assert close(losses.named["target"], [one.target for one in seen])
        assert close(losses.headline, [one.headline for one in seen])
        assert close(losses.total(), [one.total for one in seen])
        assert list(losses.named) == ["target"] + ["source"] * ("SPM" in system)
        for source in [losses.named[name] for name in losses.named if name == "source"]:
            assert close(source, [one.source for one in seen])

    def test_what_force_sees(self, make, reference, system):
        model = make(system)
        forced = model.trace(model.pairs(Batch.of(PAIRS)))
        weights = reference.weights_of(model)
        for row, pair in enumerate(PAIRS):
            seen = reference.see(weights, *pair, c=10.0)
            steps, places = seen.alphas.shape
            assert close(forced.states[row, :steps], seen.attentional)
            assert close(forced.attention[row, :steps, :places], seen.alphas)
            assert close(forced.log_probabilities[row, :steps], seen.log_probabilities)

    @pytest.mark.parametrize("layers", [1, 2, 3])
    def test_losses_with_dropout(self, make, reference, system, layers):
        """Dropout at its places and nowhere else: the reference gets the masks that were drawn."""
        model = make(system, layers=layers, dropout=0.4).train()
        original, drawn = model.dropout.mask, []

        def spy(shape, like):
            drawn.append(original(shape, like))
            return drawn[-1]

        model.dropout.mask = spy
        pairs = model.pairs(Batch.of(PAIRS))
        losses = model(pairs)
        (batch, places), steps = pairs.sources.shape, pairs.targets.shape[1]
        between = [4] * (layers - 1)
        assert [one.shape for one in drawn] == [
            *((batch, places, size) for size in [3, *between]),
            *((batch, steps, size) for size in [3, *between, 4]),
        ]
        places_of = [("encoder", layer) for layer in range(layers)]
        steps_of = [*(("decoder", layer) for layer in range(layers)), "output"]
        weights = reference.weights_of(model)
        for row, (source, headline) in enumerate(PAIRS):
            num_steps = max(len(source) * ("SPM" in system), len(headline) + 1)
            masks = {name: one[row].numpy() for name, one in zip(places_of, drawn, strict=False)}
            masks = {name: one[: len(source)] for name, one in masks.items()}
            for name, one in zip(steps_of, drawn[layers:], strict=True):
                masks[name] = one[row, :num_steps].numpy()
            seen = reference.see(weights, source, headline, 10.0, masks)
            assert close(losses.named["target"][row], seen.target)
            assert close(losses.headline[row], seen.headline)
            assert close(losses.total()[row], seen.total)
