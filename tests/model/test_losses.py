"""What counts in the losses and what does not: <pad>, padding, C, the headline's part."""

import dataclasses

import pytest
import torch

from ledeline.data.dataset import Batch
from ledeline.model.addons.spm import occurrences
from ledeline.text.subwords import EOS, PAD

PAIRS = [([4, 5, 6, 7, 5, 8], [4, 6]), ([8, 9, 4], [9, 10]), ([9, 8, 6, 4], [5])]


class TestPad:
    """<pad> up to I is a word that the decoder of an SPM system learns to write and reads again."""

    def test_it_counts_in_the_target_loss(self, make):
        model = make("EncDec+SPM")
        pairs = model.pairs(Batch.of(PAIRS))
        losses, forced = model(pairs), model.trace(pairs)
        for row, (source, headline) in enumerate(PAIRS):
            pads = forced.log_probabilities[row, len(headline) + 1 : len(source)]
            assert (pairs.targets[row, len(headline) + 1 : len(source)] == PAD).all()
            expected = losses.headline[row] - pads.sum()
            torch.testing.assert_close(losses.named["target"][row], expected)
        assert losses.named["target"][0] > losses.headline[0]
        assert losses.named["target"][1] == losses.headline[1]  # J + 1 = I: Y' = Y

    def test_its_embedding_and_its_output_row_learn(self, make):
        model = make("EncDec+SPM")
        pairs = model.pairs(Batch.of(PAIRS))
        model(pairs).named["target"].sum().backward()
        assert (model.decoder.embedding.weight.grad[PAD] != 0).all()
        # Of -log o[y] by b_o: o, less 1 at y. So <pad> gets -1 for each time it is to be written.
        written = sum(max(0, len(source) - len(headline) - 1) for source, headline in PAIRS)
        attentional = model.trace(pairs).states
        chances = model.output(attentional).softmax(-1)[..., PAD][pairs.target_mask].sum()
        torch.testing.assert_close(model.output.bias.grad[PAD], chances - written)
        assert written == 5

    @pytest.mark.parametrize("name", ["EncDec", "EncDec+sGate"])
    def test_without_spm_it_is_never_learned(self, make, name):
        model = make(name)
        losses = model(model.pairs(Batch.of(PAIRS)))
        assert torch.equal(losses.named["target"], losses.headline)
        losses.total().sum().backward()
        assert not model.decoder.embedding.weight.grad[PAD].any()
        assert (model.output.bias.grad[PAD] > 0).all()

    def test_no_embedding_row_is_frozen(self, make, system):
        model = make(system)
        assert model.encoder.embedding.padding_idx is None
        assert model.decoder.embedding.padding_idx is None


class TestPadding:
    def test_what_lies_beyond_a_pair_never_matters(self, make, system):
        model = make(system)
        pairs = model.pairs(Batch.of(PAIRS))
        model(pairs).total().sum().backward()
        before = {name: value.grad.clone() for name, value in model.named_parameters()}
        losses = model(pairs)
        for seed in range(3):
            generator = torch.Generator().manual_seed(seed)
            sources = torch.randint(1, 11, pairs.sources.shape, generator=generator)
            targets = torch.randint(1, 11, pairs.targets.shape, generator=generator)
            noisy = dataclasses.replace(
                pairs,
                sources=torch.where(pairs.source_mask, pairs.sources, sources),
                targets=torch.where(pairs.target_mask, pairs.targets, targets),
            )
            assert (noisy.sources != PAD).all()
            assert not torch.equal(noisy.targets, pairs.targets)
            model.zero_grad()
            others = model(noisy)
            others.total().sum().backward()
            assert torch.equal(others.total(), losses.total())
            assert torch.equal(others.headline, losses.headline)
            for name, value in model.named_parameters():
                torch.testing.assert_close(value.grad, before[name], rtol=0, atol=1e-12)

    def test_no_attention_falls_on_it(self, make, system):
        model = make(system)
        pairs = model.pairs(Batch.of(PAIRS))
        attention = model.trace(pairs).attention
        padding = ~pairs.source_mask.unsqueeze(1).expand_as(attention)
        assert not attention[padding].any()
        torch.testing.assert_close(attention.sum(-1), torch.ones_like(attention[..., 0]))
        assert (attention[~padding] > 0).all()

    def test_its_source_embedding_learns_nothing(self, make, system):
        model = make(system)
        model(model.pairs(Batch.of(PAIRS))).total().sum().backward()
        gradient = model.encoder.embedding.weight.grad
        assert not gradient[PAD].any()
        assert gradient[4:10].any(1).all()


class TestOccurrences:
    def test_by_hand(self, make):
        pairs = make("EncDec+SPM").pairs(Batch.of([([4, 5, 4, 4], [6]), ([5, 1], [6])]))
        assert occurrences(pairs, 7).tolist() == [[0, 0, 0, 0, 3, 1, 0], [0, 1, 0, 0, 0, 1, 0]]

    def test_padding_never_counts(self, make):
        pairs = make("EncDec+SPM").pairs(Batch.of(PAIRS))
        counts = occurrences(pairs, 11)
        assert not counts[:, PAD].any()
        assert counts.sum(1).tolist() == [6, 3, 4]
        noisy = dataclasses.replace(pairs, sources=pairs.sources + 9 * ~pairs.source_mask)
        assert torch.equal(occurrences(noisy, 11), counts)

    def test_of_equal_lengths(self, make):
        pairs = make("EncDec+SPM").pairs(Batch.of([([4, 5, 4], [6]), ([5, 1, 1], [6])]))
        assert pairs.source_mask is None
        assert occurrences(pairs, 6).tolist() == [[0, 0, 0, 0, 2, 1], [0, 2, 0, 0, 0, 1]]


class TestSourceLoss:
    def test_c_divides(self, make):
        sources = []
        for c in (1.0, 10.0, 4.0):
            model = make("EncDec+SPM", c=c)
            losses = model(model.pairs(Batch.of(PAIRS)))
            sources.append(losses.named["source"])
        torch.testing.assert_close(sources[1], sources[0] / 10)
        torch.testing.assert_close(sources[2], sources[0] / 4)

    def test_a_perfect_prediction_costs_nothing(self, make):
        """With W_q = 0 and a bias of log x~ each step predicts the source's own frequencies."""
        model = make("EncDec+SPM")
        source = [4, 5, 5, 6]
        with torch.no_grad():
            model.spm.output.weight.zero_()
            model.spm.output.bias.fill_(-100.0)
            for word in source:
                model.spm.output.bias[word] = float(torch.tensor(source.count(word)).log())
        right, wrong = (
            model(model.pairs(Batch.of([pair]))).named["source"]
            for pair in [(source, [7]), ([4, 5, 6, 6], [7])]
        )
        torch.testing.assert_close(right, torch.zeros_like(right))
        torch.testing.assert_close(wrong, torch.full_like(wrong, 2 / 10))  # one 5 less, one 6 more

    def test_the_total_is_target_and_source(self, make, system):
        model = make(system)
        losses = model(model.pairs(Batch.of(PAIRS)))
        expected = losses.named["target"] + losses.named.get("source", 0)
        assert losses.total().shape == (3,)
        torch.testing.assert_close(losses.total(), expected)
        assert ("source" in losses.named) == ("SPM" in system)


class TestHeadlineLoss:
    @pytest.mark.parametrize("gate", ["", "+sGate"])
    def test_it_is_the_target_loss_of_the_system_without_spm(self, make, gate):
        full, plain = make(f"EncDec{gate}+SPM"), make(f"EncDec{gate}", seed=3)
        shared = plain.state_dict().keys()
        kept = {name: value for name, value in full.state_dict().items() if name in shared}
        plain.load_state_dict(kept)
        losses = full(full.pairs(Batch.of(PAIRS)))
        expected = plain(plain.pairs(Batch.of(PAIRS)))
        torch.testing.assert_close(losses.headline, expected.named["target"])
        assert (losses.named["target"] > losses.headline)[[0, 2]].all()

    def test_it_has_the_headline_and_eos(self, make, system):
        model = make(system)
        pairs = model.pairs(Batch.of(PAIRS))
        losses, logs = model(pairs), model.trace(pairs).log_probabilities
        for row, (_, headline) in enumerate(PAIRS):
            assert pairs.targets[row, len(headline)] == EOS
            expected = -logs[row, : len(headline) + 1].sum()
            torch.testing.assert_close(losses.headline[row], expected)
