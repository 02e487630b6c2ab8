"""The Transformer against a slow reference, and what its specification promises with the SPM.

Numbers in comments are those of the list of tests in the specification of the system.
"""

# mypy: disable-error-code="no-untyped-call"

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn
from torch.func import functional_call
from torch.utils._python_dispatch import TorchDispatchMode

import transformer_reference as reference
from ledeline.config import DataConfig, SearchConfig
from ledeline.config.section import BadValue
from ledeline.core.errors import ConfigError, ModelError
from ledeline.data.dataset import Batch, padded
from ledeline.inference.headliner import Headliner
from ledeline.model import addons as known_addons
from ledeline.model.addons.sgate import SelectiveGateConfig
from ledeline.model.addons.spm import SourcePrediction, SourcePredictionConfig, occurrences
from ledeline.model.build import build, refusal
from ledeline.model.format.model_folder import load_model, write_description
from ledeline.model.format.pack import pack
from ledeline.model.layers.dropout import Dropout, Share, seed
from ledeline.model.layers.word_input import sinusoids
from ledeline.model.loss import logit_losses
from ledeline.model.pairs import Pairs, Sources
from ledeline.model.system_config import ADDON_CONFIGS, SystemConfig
from ledeline.model.systems.transformer import Transformer, TransformerConfig
from ledeline.search import search
from ledeline.search.step_model import Ensemble
from ledeline.text.profiles import NATURAL
from ledeline.text.subwords import BOS, EOS, PAD, SPECIALS, Subwords
from ledeline.text.tokenizer import Tokenizer
from ledeline.train.train_config import TrainConfig
from model_reference import weights_of
from systems import assert_a_beam_carries_states_along, random_system

Pair: TypeAlias = tuple[list[int], list[int]]

# With I = 5 > J + 1, I = 3 > J + 1, I = 3 < J + 1, and I = 4 = J + 1.
PAIRS: list[Pair] = [
    ([4, 5, 6, 7, 5], [4, 6]),
    ([8, 9, 4], [9]),
    ([10, 4, 7], [6, 7, 9, 4]),
    ([9, 1, 9, 5], [5, 1, 8]),
]
ADDONS = [(), ("sgate",), ("spm",), ("sgate", "spm")]
SHAPES = [(1, 1, 1), (2, 1, 2), (1, 3, 4), (2, 2, 2)]  # layers of both sides, heads
shapes = pytest.mark.parametrize(("encoder", "decoder", "heads"), SHAPES)


def small(**keys: Any) -> TransformerConfig:
    given = {"embedding_size": 8, "hidden_size": 5, "heads": 2, "dropout": 0.0}
    return TransformerConfig(**given | {"encoder_layers": 2, "decoder_layers": 2} | keys)


def random_model(*names: str, vocabulary: Any = 11, **keys: Any) -> Any:
    return random_system(*names, system=small(**keys), vocabulary=vocabulary).double()


def of_shape(*names: str, encoder: int, decoder: int, heads: int, **keys: Any) -> Any:
    layers = {"encoder_layers": encoder, "decoder_layers": decoder}
    return random_model(*names, heads=heads, **layers, **keys)


def fresh(seed: int = 1, vocabulary: int = 50, **keys: Any) -> Any:
    """A model with its first values."""
    config = TrainConfig(data=DataConfig(dataset=Path("d")), system=small(**keys))
    return build(SystemConfig.of(config.system), vocabulary, seed, config.init).eval()


def see(model: Any, pair: Pair, **more: Any) -> reference.Seen:
    """A pair through the reference, with the weights of a model."""
    return reference.see(weights_of(model), *pair, model.decoder.heads, **more)


def logits_of(model: Any, pairs: Pairs) -> Tensor:
    begun, unrolled = model._follow(pairs)
    del begun
    logits: Tensor = model.output(unrolled.states)
    return logits


def plain_pairs(batch: Batch) -> Pairs:
    """As a system without SPM sees a batch."""
    return Pairs.of(batch, batch.headline_lengths + 1, batch.headlines.shape[1] + 1)


def without_spm(model: Any, *names: str) -> Any:
    """The same model, as if it had no SPM."""
    plain = random_system(*names, system=model.config.system).double()
    state = model.state_dict()
    plain.load_state_dict({k: one for k, one in state.items() if not k.startswith("spm.")})
    return plain


def gradients_of(model: Any, loss: Tensor) -> dict[str, Tensor]:
    model.zero_grad()
    loss.backward()
    return {
        name: torch.zeros_like(one) if one.grad is None else one.grad.clone()
        for name, one in model.named_parameters()
    }


def assert_same(found: dict[str, Tensor], expected: dict[str, Tensor], atol: float = 1e-11) -> None:
    assert found.keys() >= expected.keys()
    for name, one in expected.items():
        torch.testing.assert_close(found[name], one, rtol=0, atol=atol, msg=name)


@contextmanager
def recorded_words(model: Any) -> Iterator[list[Tensor]]:
    """What the model reads of the words of a source, and then of a headline; with a gradient."""
    seen: list[Tensor] = []

    def record(_module: nn.Module, _given: Any, found: Tensor) -> None:
        if found.requires_grad:
            found.retain_grad()
        seen.append(found)

    handle = model.encoder.words.register_forward_hook(record)
    yield seen
    handle.remove()


def is_learned(values: Tensor) -> Tensor:
    """Where recorded words have a gradient. (B, I, d) -> (B, I)."""
    assert values.grad is not None
    return values.grad.abs().sum(-1) > 0


# --- the whole forward pass -----------------------------------------------------------------------


class TestReference:
    @shapes
    @pytest.mark.parametrize("names", ADDONS)
    def test_losses_and_traces(
        self, names: tuple[str, ...], encoder: int, decoder: int, heads: int
    ) -> None:
        model = of_shape(*names, encoder=encoder, decoder=decoder, heads=heads)
        pairs = model.pairs(Batch.of(PAIRS))
        with torch.no_grad():
            losses, trace, logits = model(pairs), model.trace(pairs), logits_of(model, pairs)
            begun = model.begin(pairs.sources, pairs.source_lengths, pairs.source_mask)
        assert (trace.source_predictions is not None) == ("spm" in names)
        for row, (source, headline) in enumerate(PAIRS):
            seen = see(model, (source, headline))
            steps, length = len(seen.states), len(source)
            assert steps == (
                max(length, len(headline) + 1) if "spm" in names else 1 + len(headline)
            )
            named = {"target": seen.target} | ({"source": seen.source} if "spm" in names else {})
            assert {k: v[row].item() for k, v in losses.named.items()} == pytest.approx(named)
            assert losses.headline[row].item() == pytest.approx(seen.headline)
            for found, expected in (
                (begun.encoded.states[row, :length], seen.encoded),
                (begun.encoded.sentence[row], seen.encoded.mean(0)),
                (begun.memory.states[row, :length], seen.gated),
                (trace.states[row, :steps], seen.states),
                (trace.attention[row, :steps, :length], seen.alphas[-1].mean(0)),
                (logits[row, :steps].softmax(-1), seen.distributions),
            ):
                np.testing.assert_allclose(found, expected, atol=1e-9)
            if seen.predictions is not None:
                q = trace.source_predictions[row, :steps]
                np.testing.assert_allclose(q, seen.predictions, atol=1e-9)

    @shapes
    @pytest.mark.parametrize("names", [(), ("sgate", "spm")])
    def test_steps_of_a_search(
        self, names: tuple[str, ...], encoder: int, decoder: int, heads: int
    ) -> None:
        model = of_shape(*names, encoder=encoder, decoder=decoder, heads=heads)
        source, headline = PAIRS[2]  # with the SPM it has no <pad> either
        seen = see(model, (source, headline))
        state, memory = model.encode(torch.tensor([source]))
        own = state.decoder
        for j, word in enumerate([BOS, *headline]):
            logs, state = model.step(torch.tensor([[word]]), state, memory)
            own, attention = model.decoder.step(torch.tensor([[word]]), own, memory.memory)
            for found, expected in (
                (logs.exp(), seen.distributions[j]),
                (own.attentional, seen.states[j]),
                (attention, seen.alphas[-1].mean(0)[j]),
            ):
                np.testing.assert_allclose(found[0, 0].detach(), expected, atol=1e-9)

    def test_the_reference_sees_every_weight(self) -> None:
        """Else it would prove nothing about those that it leaves out."""
        model = random_model("sgate", "spm")
        weights = weights_of(model)
        before = reference.see(weights, *PAIRS[0], 2)
        for name, one in weights.items():
            if name.endswith("of_state.bias") or name.endswith("of_source.bias"):
                continue  # that of a key moves all scores alike
            changed = weights | {name: one * 1.1}
            after = reference.see(changed, *PAIRS[0], 2)
            assert (after.target, after.source) != pytest.approx((before.target, before.source))


# --- dropout --------------------------------------------------------------------------------------


@pytest.fixture
def masks(monkeypatch: pytest.MonkeyPatch) -> dict[Dropout, list[np.ndarray]]:
    """The masks of the first pair, of each kind of dropout, in the order in which they came."""
    found: dict[Dropout, list[np.ndarray]] = {}
    plain_mask = Dropout.mask

    def recorded(self: Dropout, *arguments: Any) -> Tensor | None:
        mask = plain_mask(self, *arguments)
        if mask is not None:
            found.setdefault(self, []).append(mask[0].numpy())
        return mask

    monkeypatch.setattr(Dropout, "mask", recorded)
    return found


def places_of(kind: str, encoder: int, decoder: int) -> list[Any]:
    """Where a kind of dropout acts, in the order of the computation."""
    parts: dict[str, tuple[list[str], list[str]]] = {
        "dropout": (["attention", "feed_forward"], ["attention", "source", "feed_forward"]),
        "attention_dropout": (["attention weights"], ["attention weights", "source weights"]),
        "activation_dropout": (["activation"], ["activation"]),
    }
    places: list[Any] = []
    for side, layers, own in zip(
        ("encoder", "decoder"), (encoder, decoder), parts[kind], strict=True
    ):
        places += [(side, "words")] if kind == "dropout" else []
        places += [(side, layer, part) for layer in range(layers) for part in own]
    return places + (["output"] if kind == "dropout" else [])


KINDS = ["dropout", "attention_dropout", "activation_dropout"]


class TestDropout:
    @pytest.mark.parametrize("kinds", [[kind] for kind in KINDS] + [KINDS])
    @pytest.mark.parametrize("names", [(), ("sgate", "spm")])
    def test_each_kind_is_where_it_should_be(
        self, names: tuple[str, ...], kinds: list[str], masks: dict[Dropout, list[np.ndarray]]
    ) -> None:
        rates = dict.fromkeys(kinds, 0.4)
        model = random_model(*names, encoder_layers=1, **rates).train()
        torch.manual_seed(5)
        losses = model(model.pairs(Batch.of(PAIRS[:1])))
        first = model.encoder.layers[0]
        own = {
            "dropout": first.dropout,
            "attention_dropout": first.attention.dropout,
            "activation_dropout": first.feed_forward.dropout,
        }
        assert set(masks) == {own[kind] for kind in kinds}
        by_place: dict[Any, np.ndarray] = {}
        for kind in kinds:
            by_place |= dict(zip(places_of(kind, 1, 2), masks[own[kind]], strict=True))
        assert all((mask == 0).any() and (mask > 0).any() for mask in by_place.values())
        seen, plain = see(model, PAIRS[0], masks=by_place), see(model, PAIRS[0])
        assert losses.named["target"].item() == pytest.approx(seen.target)
        assert abs(seen.target - plain.target) > 1e-3
        if "spm" in names:
            assert losses.named["source"].item() == pytest.approx(seen.source)

    def test_every_mask_is_fresh(self, masks: dict[Dropout, list[np.ndarray]]) -> None:
        model = random_model("spm", **dict.fromkeys(KINDS, 0.5)).train()
        model(model.pairs(Batch.of(PAIRS[:1])))
        drawn = [mask for some in masks.values() for mask in some]
        assert len({mask.tobytes() for mask in drawn}) == len(drawn)

    def test_nothing_is_dropped_in_evaluation(self, masks: dict[Dropout, list[np.ndarray]]) -> None:
        model = random_model("spm", **dict.fromkeys([*KINDS, "word_dropout"], 0.4))
        losses = model(model.pairs(Batch.of(PAIRS[:1])))
        assert losses.named["target"].item() == pytest.approx(see(model, PAIRS[0]).target)
        assert not masks


# --- noise at words -------------------------------------------------------------------------------


def word_batch(num_pairs: int, length: int, vocabulary: int) -> Batch:
    """Pairs with all kinds of ids in them, of several lengths, special ones too."""
    random = np.random.default_rng(4)
    lengths = [length - row % 3 for row in range(num_pairs)]
    return Batch.of(
        [
            (
                random.integers(1, vocabulary, own).tolist(),
                random.integers(4, vocabulary, own // 2).tolist(),
            )
            for own in lengths
        ]
    )


def words_read(model: Any, found: Tensor) -> np.ndarray:
    """The words that were read, by their vectors (B, I, d); -1 where it was 0. (B, I)."""
    size = found.shape[-1]
    places = np.array([reference.place_vector(i, size) for i in range(found.shape[1])])
    vectors = (found.detach().numpy() - places) / np.sqrt(size)
    table = np.concatenate([model.encoder.embedding.weight.detach().numpy(), np.zeros((1, size))])
    distances = np.abs(vectors[:, :, None] - table).max(-1)
    assert distances.min(-1).max() < 1e-12
    found_words: np.ndarray = distances.argmin(-1)
    found_words[found_words == len(table) - 1] = -1
    return found_words


class TestWordNoise:
    VOCABULARY = 14  # 10 words

    def read(self, batch: Batch, **keys: Any) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """The words of sources and headlines (B, I), and what training read of them."""
        model = random_model(vocabulary=self.VOCABULARY, embedding_size=4, **keys).train()
        pairs = model.pairs(batch)
        seed(2, 1)
        with recorded_words(model) as seen:
            model(pairs)
        for words, found in zip((pairs.sources, pairs.previous), seen, strict=True):
            yield words.numpy(), words_read(model, found)

    def test_shares_are_about_right_on_both_sides(self) -> None:
        batch = word_batch(300, 12, self.VOCABULARY)
        for words, read in self.read(batch, word_replacement=0.3, word_dropout=0.2):
            free = words >= len(SPECIALS)
            assert (~free).any()
            assert (read[~free] == words[~free]).all()  # <pad>, <unk>, <bos> and <eos> stay
            dropped, kept = read[free] == -1, read[free] >= 0
            assert dropped.mean() == pytest.approx(0.2, abs=0.03)
            changed = (read[free] != words[free]) & kept
            assert changed[kept].mean() == pytest.approx(0.3 * 9 / 10, abs=0.03)

    def test_all_types_replace_alike_but_special_ones(self) -> None:
        batch = word_batch(500, 12, self.VOCABULARY)
        counts = np.zeros(self.VOCABULARY)
        for words, read in self.read(batch, word_replacement=0.99):
            counts += np.bincount(read[words >= len(SPECIALS)], minlength=self.VOCABULARY)
        shares = counts / counts.sum()
        assert (shares[: len(SPECIALS)] == 0).all()
        np.testing.assert_allclose(shares[len(SPECIALS) :], 0.1, atol=0.015)

    def test_what_is_dropped_is_not_what_is_replaced(self) -> None:
        """Both are drawn for themselves; a word does not lose its chance to be read as it is."""
        batch = word_batch(300, 12, self.VOCABULARY)
        for words, read in self.read(batch, word_replacement=0.5, word_dropout=0.5):
            free = words >= len(SPECIALS)
            same = (read == words)[free].mean()
            assert same == pytest.approx(0.5 * (0.5 + 0.5 / 10), abs=0.03)

    def test_sources_and_headlines_have_draws_of_their_own(self) -> None:
        words = [4, 5, 6, 7, 8, 9] * 5
        model = random_model(embedding_size=4, word_dropout=0.5).train()
        with recorded_words(model) as seen:
            model(model.pairs(Batch.of([(words, words)])))
        source, headline = (words_read(model, one)[0] == -1 for one in seen)
        assert (source[:-1] != headline[1:-1]).any()

    @pytest.mark.parametrize("keys", [{"word_replacement": 0.6}, {"word_dropout": 0.6}])
    def test_only_in_training(self, keys: dict[str, float]) -> None:
        model = random_model("spm", **keys)
        losses = model(model.pairs(Batch.of(PAIRS)))
        for row, pair in enumerate(PAIRS):
            expected = see(model, pair)
            assert losses.named["target"][row].item() == pytest.approx(expected.target)
            assert losses.named["source"][row].item() == pytest.approx(expected.source)

    @pytest.mark.parametrize("names", [(), ("spm",)])
    def test_losses_are_about_the_words_as_they_were(self, names: tuple[str, ...]) -> None:
        model = random_model(*names, word_replacement=0.5, word_dropout=0.3).train()
        pair = ([4, 5, 6, 7, 5, 8, 9, 10], [4, 6, 8, 5, 9])
        torch.manual_seed(1)
        with recorded_words(model) as seen:
            losses = model(model.pairs(Batch.of([pair])))
        read, kept = {}, {}
        for side, found in zip(("encoder", "decoder"), seen, strict=True):
            words = words_read(model, found)[0]
            read[side] = words.tolist()
            kept[side, "kept"] = (words >= 0)[:, None]
        for side, words in (("encoder", pair[0]), ("decoder", [BOS, *pair[1]])):
            changed = [one for one, word in zip(read[side], words, strict=False) if one != word]
            assert -1 in changed  # dropped
            assert max(changed) >= len(SPECIALS)  # replaced
        expected = see(model, pair, masks=kept, read=read)
        assert losses.named["target"].item() == pytest.approx(expected.target)
        assert losses.headline.item() == pytest.approx(expected.headline)
        if "spm" in names:
            assert losses.named["source"].item() == pytest.approx(expected.source)
        as_it_was = see(model, pair)
        assert abs(as_it_was.target - expected.target) > 1e-3

    @pytest.mark.parametrize("world_size", [2, 3])
    @pytest.mark.parametrize("noise", [True, False])
    def test_processes_that_share_a_batch_learn_what_one_would(
        self, world_size: int, noise: bool
    ) -> None:
        words = {"word_replacement": 0.3, "word_dropout": 0.3}
        keys = words if noise else dict.fromkeys(KINDS, 0.3)
        model = random_model("sgate", "spm", encoder_layers=1, **keys).train()
        whole = word_batch(5, 7, 11)

        def learned(batch: Batch, share: Share) -> tuple[Tensor, dict[str, Tensor]]:
            model.share_batches(share)
            seed(1, 9)
            losses = model(model.pairs(batch)).total()
            return losses.detach(), gradients_of(model, losses.sum())

        losses, gradients = learned(whole, Share(0, 1, 5))
        sums = {name: torch.zeros_like(one) for name, one in gradients.items()}
        for rank in range(world_size):
            own = slice(rank, None, world_size)
            part = Batch(
                whole.sources[own],
                whole.source_lengths[own],
                whole.headlines[own],
                whole.headline_lengths[own],
                5,
            )
            mine, added = learned(part, Share(rank, world_size, 5))
            torch.testing.assert_close(mine, losses[own], rtol=0, atol=1e-11)
            sums = {name: one + added[name] for name, one in sums.items()}
        assert_same(sums, gradients, 1e-10)
        seed(1, 10)
        model.share_batches(Share(0, 1, 5))
        assert not torch.allclose(model(model.pairs(whole)).total(), losses)


# --- places ---------------------------------------------------------------------------------------


class TestPlaces:
    @pytest.mark.parametrize("size", [2, 4, 8, 10])
    def test_they_have_no_end(self, size: int) -> None:
        model = random_model(embedding_size=size, heads=2)
        words = torch.full((1, 1500), 5)
        table = model.encoder.embedding.weight.detach().numpy()
        with torch.no_grad():
            found = model.encoder.words(words)[0].numpy()
            later = model.encoder.words.next_place(torch.tensor([[5, 6]]), 70_000)[0].numpy()
        for place in (0, 1, 2, 77, 1499):
            expected = np.sqrt(size) * table[5] + reference.place_vector(place, size)
            np.testing.assert_allclose(found[place], expected, atol=1e-9)
        for word, one in zip((5, 6), later, strict=True):
            expected = np.sqrt(size) * table[word] + reference.place_vector(70_000, size)
            np.testing.assert_allclose(one, expected, atol=1e-9)

    @pytest.mark.parametrize("kind", [torch.float16, torch.bfloat16])
    def test_in_16_bits_no_two_are_one(self, kind: torch.dtype) -> None:
        """Whole numbers above 256 are not all there in bfloat16."""
        like = torch.zeros(1, 64, dtype=kind)
        found, exact = (sinusoids(torch.arange(4000), one) for one in (like, like.double()))
        assert found.dtype == kind
        assert (found.double() - exact).abs().max() < 0.005

    def test_each_pad_of_the_tail_has_a_place_of_its_own(self) -> None:
        """So that its predictions can differ from those of the others."""
        model = random_model("spm")
        trace = model.trace(model.pairs(Batch.of([(list(range(4, 11)) * 3, [5])])))
        q = trace.source_predictions[0].detach()
        assert len({tuple(row) for row in q.round(decimals=6).tolist()}) == len(q) == 21

    def test_pairs_far_longer_than_any_in_training(self) -> None:
        model = random_model("sgate", "spm", encoder_layers=1, decoder_layers=1)
        long: Pair = ([4, 5, 6, 7, 8] * 60, [9, 10] * 20)
        pairs = model.pairs(Batch.of([long, PAIRS[0]]))
        with torch.no_grad():
            losses = model(pairs)
            assert losses.total().isfinite().all()
            expected = see(model, PAIRS[0])
            assert losses.named["target"][1].item() == pytest.approx(expected.target)
            states = model.trace(pairs).states[:1]
            state, memory = model.encode(torch.tensor([long[0]]))
            for j in range(60):
                _, state = model.step(pairs.previous[:1, j : j + 1], state, memory)
                torch.testing.assert_close(state.decoder.attentional, states[:, j : j + 1])
        config = SearchConfig(beam=2, max_length=40)
        (found,) = search(model, *padded([long[0]]), config)
        assert found

    def test_the_source_has_an_order(self) -> None:
        """By its places alone: without them, a source is a set of words."""
        model = random_model()
        one, other = (torch.tensor([words]) for words in ([4, 5, 6, 7], [7, 5, 4, 6]))
        found = [model.encoder(words).sentence for words in (one, other)]
        assert not torch.allclose(*found)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(model.encoder.words, "forward", model.encoder.embedding.forward)
            found = [model.encoder(words).sentence for words in (one, other)]
        torch.testing.assert_close(*found)


# --- 1, 7: causality, and one step after another --------------------------------------------------


class TestCausality:
    @shapes
    def test_later_words_change_nothing(self, encoder: int, decoder: int, heads: int) -> None:
        model = of_shape(encoder=encoder, decoder=decoder, heads=heads).float()
        headline = [4, 5, 6, 7, 8, 9]
        one = logits_of(model, model.pairs(Batch.of([(PAIRS[0][0], headline)])))
        for t in range(len(headline)):
            changed = [*headline[:t], *(13 - word for word in headline[t:])]
            other = logits_of(model, model.pairs(Batch.of([(PAIRS[0][0], changed)])))
            assert torch.equal(one[:, : t + 1], other[:, : t + 1])
            assert not torch.equal(one[:, t + 1], other[:, t + 1])

    @shapes
    def test_each_step_sees_all_words_up_to_it(
        self, encoder: int, decoder: int, heads: int
    ) -> None:
        """By gradients; and each word of a source is seen from all its places."""
        model = of_shape(encoder=encoder, decoder=decoder, heads=heads)
        begun = model.begin(torch.tensor([PAIRS[0][0]]), None, None)
        words = torch.tensor([[BOS, 4, 5, 6, 7]])
        for j in range(5):
            with recorded_words(model) as seen:
                states, _ = model.decoder.unroll(words, begun.state, begun.memory)
                encoded = model.encoder(words).states
            (states[0, j] ** 2).sum().backward(retain_graph=True)
            (encoded[0, j] ** 3).sum().backward()
            decoded, sources = (is_learned(one)[0] for one in seen)
            assert decoded.tolist() == [place <= j for place in range(5)]
            assert sources.all()

    @shapes
    @pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float32, 1e-5), (torch.float64, 1e-9)])
    def test_one_step_after_another_is_all_at_once(
        self, encoder: int, decoder: int, heads: int, dtype: torch.dtype, tolerance: float
    ) -> None:  # 7
        model = of_shape("sgate", encoder=encoder, decoder=decoder, heads=heads).to(dtype)
        words = torch.tensor([[2, 4, 5, 6, 7, 8, 9, 10], [2, 9, 9, 4, 4, 5, 3, 0]])
        sources = Sources.of(*padded([source for source, _ in PAIRS[:2]]))
        with torch.no_grad():
            begun = model.begin(*sources)
            states, attention = model.decoder.unroll(words, begun.state, begun.memory)
            state = begun.state
            for j in range(words.shape[1]):
                state, weights = model.decoder.step(words[:, j : j + 1], state, begun.memory)
                for found, whole in ((state.attentional, states), (weights, attention)):
                    expected = whole[:, j : j + 1]
                    torch.testing.assert_close(found, expected, atol=tolerance, rtol=0)
                assert [one.shape for one in state.caches] == [(2, 1, j + 1, 16)] * decoder

    @shapes
    def test_a_beam_carries_its_caches_along(self, encoder: int, decoder: int, heads: int) -> None:
        model = of_shape("sgate", "spm", encoder=encoder, decoder=decoder, heads=heads)
        assert_a_beam_carries_states_along(model, [source for source, _ in PAIRS])


# --- 1 to 6: the tail of <pad>, and the loss of the source ----------------------------------------


class TestTail:
    @shapes
    @pytest.mark.parametrize("names", [(), ("sgate",)])
    def test_it_changes_no_earlier_step(
        self, names: tuple[str, ...], encoder: int, decoder: int, heads: int
    ) -> None:  # 1
        model = of_shape(*names, "spm", encoder=encoder, decoder=decoder, heads=heads)
        plain = without_spm(model, *names)
        for source, headline in PAIRS:
            batch, steps = Batch.of([(source, headline)]), len(headline) + 1
            pairs = model.pairs(batch)
            logits, expected = logits_of(model, pairs), logits_of(plain, plain.pairs(batch))
            torch.testing.assert_close(logits[:, :steps], expected, rtol=0, atol=1e-12)
            losses, before = model(pairs), plain(plain.pairs(batch)).named["target"]
            tail = logit_losses(logits, pairs.targets)[:, steps:].sum(1)
            assert (tail > 0).all() == (len(source) > steps)
            torch.testing.assert_close(losses.named["target"], before + tail)
            torch.testing.assert_close(losses.headline, before.detach())

    def test_without_it_training_is_that_of_the_plain_system(self) -> None:  # 2
        """With the same random numbers, too: the SPM draws none."""
        rates = dict.fromkeys([*KINDS, "word_dropout", "word_replacement"], 0.3)
        model = random_model("spm", **rates).train()
        plain, batch = without_spm(model).train(), Batch.of(PAIRS)
        found = []
        for one in (model, plain):
            seed(1, 1)
            loss = one(plain_pairs(batch)).named["target"]
            found.append((loss.detach(), gradients_of(one, loss.sum())))
        assert torch.equal(found[0][0], found[1][0])
        assert_same(found[0][1], found[1][1])
        assert max(one.abs().max().item() for one in found[1][1].values()) > 0.1

    def test_masked_it_has_no_gradient(self) -> None:  # 2
        model, batch = random_model("sgate", "spm"), Batch.of(PAIRS)
        plain, pairs = without_spm(model, "sgate"), model.pairs(batch)
        masked = replace(pairs, target_mask=pairs.headline_mask)
        assert pairs.target_mask is not None
        assert (pairs.target_mask & ~pairs.headline_mask).any()
        model.addons["spm"].c = 1e30  # the weight of the source loss is 1 / C
        found, whole = (gradients_of(model, model(one).total().sum()) for one in (masked, pairs))
        expected = gradients_of(plain, plain(plain.pairs(batch)).total().sum())
        assert_same(found, expected)
        assert not torch.allclose(whole["output.bias"], expected["output.bias"])

    def test_sums(self) -> None:  # 3, 6
        """Of q~ as many as steps, of x~ as many as source tokens; they are the same to J + 1 = I."""
        model = random_model("spm")
        pairs = model.pairs(Batch.of(PAIRS))
        q = model.trace(pairs).source_predictions
        assert pairs.target_mask is not None
        predicted = (q * pairs.target_mask.unsqueeze(-1)).sum((1, 2))
        there = occurrences(pairs, 11).sum(1)
        assert there.tolist() == [len(source) for source, _ in PAIRS] == [5, 3, 3, 4]
        assert predicted.tolist() == pytest.approx([5, 3, 5, 4])

    def test_the_source_loss_is_0_where_the_sums_are_the_same(self) -> None:  # 3
        """Whatever the order; the states of the decoder are as good as told what to predict."""
        model = random_model("spm", embedding_size=12)
        spm = model.addons["spm"]
        with torch.no_grad():
            spm.output.weight.copy_(100 * torch.eye(11, 12))
            spm.output.bias.zero_()
        source, other = [4, 5, 6, 7, 5], [4, 5, 6, 7, 7]

        def loss(words: list[int], predicted: list[int]) -> float:
            pairs = model.pairs(Batch.of([(words, [8])]))
            begun, unrolled = model._follow(pairs)
            view = model._view(pairs, begun, unrolled)
            states = torch.eye(12, dtype=torch.float64)[predicted].unsqueeze(0)
            found: float = spm.loss(replace(view, states=states), pairs).item()
            return found

        for order in (source, source[::-1], sorted(source)):
            assert loss(source, order) == pytest.approx(0, abs=1e-12)
            assert loss(order, source) == pytest.approx(0, abs=1e-12)
            assert loss(order, other) == pytest.approx(2 / 10)  # a 5 too few, a 7 too many

    @pytest.mark.parametrize("names", ADDONS)
    def test_what_fills_up_a_batch_changes_nothing(self, names: tuple[str, ...]) -> None:  # 4
        model = random_model(*names)
        pairs = model.pairs(Batch.of(PAIRS))
        assert pairs.source_mask is not None
        assert pairs.target_mask is not None
        other = replace(
            pairs,
            sources=torch.where(pairs.source_mask, pairs.sources, 10),
            targets=torch.where(pairs.target_mask, pairs.targets, 9),
        )
        assert (other.sources != pairs.sources).any()
        assert (other.previous != pairs.previous).any()
        found = []
        for one in (pairs, other):
            losses = model(one)
            found.append((losses.named, gradients_of(model, losses.total().sum())))
        for before, after in zip(*found, strict=True):
            assert_same(after, before)
        for row, pair in enumerate(PAIRS):
            alone = model(model.pairs(Batch.of([pair])))
            for name, loss in alone.named.items():
                torch.testing.assert_close(found[0][0][name][row], loss[0])

    @pytest.mark.parametrize("names", [(), ("spm",)])
    def test_pad_learns_where_it_is_written(self, names: tuple[str, ...]) -> None:  # 5
        """The one of the tail does, the one that fills up a batch does not."""
        model = random_model(*names)
        pairs = model.pairs(Batch.of([PAIRS[0], ([4, 5, 6, 7], [8]), ([4, 5], [6, 7, 8])]))
        assert model.encoder.embedding.padding_idx is None
        with recorded_words(model) as seen:
            model(pairs).total().sum().backward()
        sources, headlines = map(is_learned, seen)
        assert pairs.source_mask is not None
        assert torch.equal(sources, pairs.source_mask)
        assert pairs.target_mask is not None
        assert torch.equal(headlines, pairs.target_mask)
        in_tail = (pairs.previous == PAD) & pairs.target_mask
        assert in_tail.any() == ("spm" in names)
        assert (~pairs.target_mask).any()

    def test_pad_is_a_target_of_the_tail(self) -> None:  # 5
        """With no other loss, only its steps of the tail move its bias up."""
        model = random_model("spm")
        batch = Batch.of(PAIRS[:1])  # I = 5, J + 1 = 3
        gradient = gradients_of(model, model(model.pairs(batch)).named["target"].sum())
        o = see(model, PAIRS[0]).distributions
        assert gradient["output.bias"][PAD].item() == pytest.approx(o[:, PAD].sum() - 2)

    def test_pad_is_never_written(self) -> None:  # 5
        model = random_model("spm")
        with torch.no_grad():
            model.output.bias[PAD] += 50
            model.output.bias[BOS] += 40
        sources = padded([source for source, _ in PAIRS])
        state, memory = model.encode(*Sources.of(*sources))
        logs, _ = model.step(torch.full((4, 1), BOS), state, memory)
        assert (logs.argmax(-1) == PAD).all()  # it would like to
        for found in search(model, *sources, SearchConfig(beam=3, n_best=3)):
            assert found
            for one in found:
                assert not {PAD, BOS, EOS} & set(one.ids)

    def test_a_source_as_short_as_its_headline(self) -> None:  # 6
        """J + 1 = I has no tail; J + 1 > I has none either, and q~ is of J + 1 steps."""
        model = random_model("spm")
        plain = without_spm(model)
        lengths = np.array([4, 3, 1]), np.array([3, 4, 2])
        assert model.num_steps(*lengths).tolist() == [4, 5, 3]
        for pair in (PAIRS[3], PAIRS[2], ([5], [4, 6]), ([5], [])):
            batch = Batch.of([pair])
            pairs = model.pairs(batch)
            assert pairs.target_mask is None
            assert not (pairs.targets == PAD).any()
            losses, seen = model(pairs), see(model, pair)
            expected = plain(plain.pairs(batch)).named["target"]
            torch.testing.assert_close(losses.named["target"], expected)
            assert losses.named["source"].item() == pytest.approx(seen.source)


# --- 7: decoding costs the same with the SPM ------------------------------------------------------


class Operations(TorchDispatchMode):
    """All operations of torch, in order, with the shapes of what they give."""

    def __init__(self) -> None:
        super().__init__()
        self.done: list[tuple[str, Any]] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        found = func(*args, **(kwargs or {}))
        self.done.append((str(func), getattr(found, "shape", None)))
        return found


def test_a_search_does_the_same_with_and_without_the_spm() -> None:  # 7
    model = random_model("spm")
    plain, sources = without_spm(model), padded([source for source, _ in PAIRS])
    work, hypotheses = [], []
    for one in (model, plain):
        with Operations() as operations:
            hypotheses.append(search(one, *sources, SearchConfig(beam=3)))
        work.append(operations.done)
    assert work[0] == work[1]
    assert len(work[0]) > 100
    for found, expected in zip(*hypotheses, strict=True):
        assert [(one.ids, one.cost) for one in found] == [(one.ids, one.cost) for one in expected]
    with Operations() as operations, torch.no_grad():
        model(model.pairs(Batch.of(PAIRS)))
    with_spm = len(operations.done)
    with Operations() as operations, torch.no_grad():
        plain(plain.pairs(Batch.of(PAIRS)))
    assert with_spm > len(operations.done)  # training does more


# --- 8: gradients ---------------------------------------------------------------------------------


class TestGradient:
    @pytest.mark.parametrize("loss", ["target", "source", "total"])
    def test_by_differences(self, loss: str) -> None:  # 8
        sizes = {"embedding_size": 4, "hidden_size": 3, "encoder_layers": 1, "decoder_layers": 1}
        model = random_model("sgate", "spm", vocabulary=7, **sizes)
        pairs = model.pairs(Batch.of([([4, 5, 6, 4], [5]), ([6, 5], [4, 5])]))
        names = [name for name, _ in model.named_parameters()]
        values = [one.detach().clone().requires_grad_() for one in model.parameters()]

        def call(*tensors: Tensor) -> Tensor:
            losses = functional_call(model, dict(zip(names, tensors, strict=True)), (pairs,))
            found: Tensor = losses.total() if loss == "total" else losses.named[loss]
            return found

        assert torch.autograd.gradcheck(call, values, fast_mode=loss != "total")

    def test_attention_has_one_only_where_it_is_asked_for(self) -> None:
        model = random_model()
        begun = model.begin(torch.tensor([PAIRS[0][0]]), None, None)
        words = torch.tensor([[BOS, 4, 5]])
        for wanted in (False, True):
            states, attention = model.decoder.unroll(
                words, begun.state, begun.memory, attention_gradient=wanted
            )
            assert states.requires_grad
            assert attention.requires_grad == wanted


# --- attention ------------------------------------------------------------------------------------


class TestAttention:
    @pytest.mark.parametrize("layer", [0, 1, 2, 3])
    @pytest.mark.parametrize("head", [0, 1, 2])
    def test_the_chosen_one(self, layer: int, head: int) -> None:
        keys = {"decoder_layers": 3, "attention_layer": layer, "attention_head": head}
        model, pairs = random_model("sgate", **keys), Batch.of(PAIRS)
        with torch.no_grad():
            trace = model.trace(model.pairs(pairs))
        for row, (source, headline) in enumerate(PAIRS):
            seen = see(model, (source, headline))
            alphas = seen.alphas[layer - 1]  # 0: the last
            expected = alphas[head - 1] if head else alphas.mean(0)
            found = trace.attention[row, : len(headline) + 1]
            np.testing.assert_allclose(found[:, : len(source)], expected, atol=1e-9)
            assert (found[:, len(source) :] == 0).all()
        source, headline = PAIRS[3]
        begun = model.begin(torch.tensor([source]), None, None)
        state = begun.state
        for j, word in enumerate([BOS, *headline]):
            state, weights = model.decoder.step(torch.tensor([[word]]), state, begun.memory)
            np.testing.assert_allclose(weights[0, 0].detach(), expected[j], atol=1e-9)

    def test_the_choice_changes_nothing_else(self) -> None:
        one, other = random_model("spm"), random_model("spm", attention_layer=1, attention_head=2)
        found, expected = (model(model.pairs(Batch.of(PAIRS))).named for model in (one, other))
        assert_same(found, expected, 0.0)

    def test_another_may_be_chosen_for_the_same_weights(self) -> None:
        model = random_model("spm")
        chosen = build(model.explained_by(1, 2), 11).double().eval()
        chosen.load_state_dict(model.state_dict())
        assert chosen.config.addons == model.config.addons
        assert chosen.config.system == small(attention_layer=1, attention_head=2)
        pairs = model.pairs(Batch.of(PAIRS))
        found = chosen.trace(pairs).attention
        torch.testing.assert_close(found, model.every_attention(pairs)[:, 0, 1])

    @shapes
    def test_every_attention(self, encoder: int, decoder: int, heads: int) -> None:
        model = of_shape("sgate", encoder=encoder, decoder=decoder, heads=heads)
        pairs = model.pairs(Batch.of(PAIRS))
        begun = model.begin(pairs.sources, pairs.source_lengths, pairs.source_mask)
        found = model.decoder.every_attention(pairs.previous, begun.memory).detach()
        assert found.shape == (4, decoder, heads, 5, 5)
        assert model.num_attentions == (decoder, heads)
        assert torch.equal(model.every_attention(pairs), found)
        torch.testing.assert_close(found.sum(-1), torch.ones_like(found[..., 0]))
        for row, (source, headline) in enumerate(PAIRS):
            seen = see(model, (source, headline)).alphas
            own = found[row, :, :, : len(headline) + 1]
            np.testing.assert_allclose(own[..., : len(source)], seen, atol=1e-9)
            assert (own[..., len(source) :] == 0).all()

    def test_what_follows_attention_is_refused(self, monkeypatch: pytest.MonkeyPatch) -> None:
        class Following(SourcePrediction):
            def attention_keys(self, extra: Any) -> Tensor:
                raise NotImplementedError

        reason = "attention is computed for all steps at once, in every layer and head"
        assert refusal(Transformer, "coverage") == reason
        with pytest.raises(ConfigError, match=rf"coverage.*transformer: {reason}"):
            random_model("coverage")
        others: Any = known_addons.ADDONS
        monkeypatch.setitem(others, "following", Following)
        configs: Any = ADDON_CONFIGS
        monkeypatch.setitem(configs, "following", SourcePredictionConfig)
        model = random_model("following")
        with pytest.raises(ModelError, match=f"changes attention .* {reason}"):
            model(model.pairs(Batch.of(PAIRS)))
        state, memory = model.encode(torch.tensor([[4, 5]]))
        with pytest.raises(ModelError, match="changes attention"):
            model.step(torch.tensor([[BOS]]), state, memory)


class TestPadding:
    @pytest.mark.parametrize("names", [(), ("sgate", "spm")])
    def test_it_changes_nothing(self, names: tuple[str, ...]) -> None:
        """Whatever stands at padded places, and however many there are."""
        model = random_model(*names)
        source, words = [4, 5, 6], torch.tensor([[2, 4, 5]])
        begun = model.begin(torch.tensor([source]), None, None)
        alone, attention = model.decoder.unroll(words, begun.state, begun.memory)
        for filling in ([0], [7, 8, 9, 10], [5] * 9):
            ids = torch.tensor([source + filling])
            mask = torch.arange(ids.shape[1]).unsqueeze(0) < 3
            padded_begun = model.begin(ids, torch.tensor([3]), mask)
            torch.testing.assert_close(padded_begun.encoded.sentence, begun.encoded.sentence)
            torch.testing.assert_close(padded_begun.encoded.states[:, :3], begun.encoded.states)
            assert (padded_begun.encoded.states[:, 3:] == 0).all()
            found, weights = model.decoder.unroll(words, padded_begun.state, padded_begun.memory)
            torch.testing.assert_close(found, alone)
            torch.testing.assert_close(weights[..., :3], attention)
            assert (weights[..., 3:] == 0).all()


# --- one table of words, and first values ---------------------------------------------------------


TABLE = "encoder.words.table.weight"


class TestTable:
    def test_it_is_there_once(self) -> None:
        model = random_model("sgate", "spm")
        table = model.get_parameter(TABLE)
        assert model.decoder.embedding is model.encoder.embedding
        assert model.output.weight is model.decoder.embedding.weight is table
        of_words = [name for name, one in model.state_dict().items() if one.shape == table.shape]
        assert of_words == [TABLE, "spm.output.weight"]
        assert [name for name in model.state_dict() if name.startswith("output")] == ["output.bias"]
        assert model.state_dict().keys() == dict(model.named_parameters()).keys()

    @pytest.mark.parametrize(
        "changed",
        [
            lambda model: model,
            lambda model: model.float().double(),
            deepcopy,
            lambda model: model.load_state_dict(random_model().state_dict()) and model,
        ],
        ids=["as made", "moved", "copied", "loaded"],
    )
    def test_all_three_read_the_same(self, changed: Callable[[Any], Any]) -> None:
        """After a change of the table as before."""
        model, pair = changed(random_model()), PAIRS[0]
        with torch.no_grad():
            model.get_parameter(TABLE).mul_(1.5).add_(0.1)
            model.output.bias.add_(0.2)
            found = model(model.pairs(Batch.of([pair]))).named["target"].item()
        assert found == pytest.approx(see(model, pair).target)

    def test_a_copy_is_a_model_of_its_own(self) -> None:
        model = random_model()
        copy = deepcopy(model)
        with torch.no_grad():
            copy.get_parameter(TABLE).zero_()
        assert model.get_parameter(TABLE).abs().min() > 0
        assert model.output.weight.abs().min() > 0
        assert (copy.output.weight == 0).all()
        assert (copy.decoder.embedding.weight == 0).all()

    def test_it_learns_from_all_three(self) -> None:
        model, batch = random_model(), Batch.of([([4, 5], [6])])
        gradient = gradients_of(model, model(model.pairs(batch)).total().sum())[TABLE]
        with recorded_words(model) as seen:
            model(model.pairs(batch)).total().sum().backward()
        assert all(one.grad is not None and one.grad.abs().min() > 0 for one in seen)
        seen_slowly = see(model, ([4, 5], [6]))
        errors = seen_slowly.distributions - np.eye(11)[[6, EOS]]
        of_output = torch.from_numpy(errors.T @ seen_slowly.states)
        rest = gradient - of_output  # of what was read
        read = rest.abs().sum(1) > 1e-9
        assert read.nonzero().squeeze(1).tolist() == [BOS, 4, 5, 6]

    def test_first_values(self) -> None:
        """Scaled, words are as large as places; and xavier for the rest."""
        d = 64
        model = fresh(vocabulary=400, embedding_size=d, hidden_size=96, heads=4)
        table = model.get_parameter(TABLE)
        assert table.std().item() == pytest.approx(1 / np.sqrt(d), rel=0.03)
        with torch.no_grad():
            places = model.encoder.words(torch.arange(400).unsqueeze(0))
        assert 0.5 < (places.std() / np.sqrt(1.5)).item() < 2
        for name, one in model.named_parameters():
            if one.dim() == 1:
                value = 1.0 if name.endswith("norm.weight") else 0.0
                assert (one == value).all(), name
            elif name != TABLE:
                expected = np.sqrt(2 / sum(one.shape))
                assert one.std().item() == pytest.approx(expected, rel=0.05), name

    def test_no_two_layers_start_alike(self) -> None:
        model = fresh(encoder_layers=3, decoder_layers=3)
        first = [one for name, one in model.named_parameters() if name.endswith("mix.weight")]
        assert len({one[0, 0].item() for one in first}) == len(first) == 3 + 2 * 3
        same, other = fresh(encoder_layers=3), fresh(seed=2, encoder_layers=3)
        assert torch.equal(same.get_parameter(TABLE), model.get_parameter(TABLE))
        assert not torch.equal(other.get_parameter(TABLE), model.get_parameter(TABLE))


# --- settings -------------------------------------------------------------------------------------


class TestSettings:
    def test_the_published_ones(self) -> None:
        own = TransformerConfig()
        assert (own.name, own.title) == ("transformer", "Transformer")
        assert (own.encoder_layers, own.decoder_layers, own.heads) == (6, 6, 8)
        assert (own.embedding_size, own.hidden_size, own.dropout) == (512, 2048, 0.3)
        others = own.attention_dropout, own.activation_dropout
        assert (*others, own.word_dropout, own.word_replacement) == (0.0, 0.0, 0.0, 0.0)
        assert (own.attention_layer, own.attention_head) == (0, 0)

    def test_the_recipe(self) -> None:
        config = TrainConfig(data=DataConfig(dataset=Path("d")), system=TransformerConfig())
        optimizer: Any = config.optimizer
        schedule: Any = config.schedule
        assert (optimizer.name, optimizer.learning_rate) == ("adam", 0.001)
        assert (optimizer.beta2, optimizer.epsilon) == (0.98, 1e-9)
        assert (schedule.name, schedule.warmup_steps) == ("warmup_inverse_sqrt", 4000)
        assert config.init.name == "xavier"

    @pytest.mark.parametrize(
        ("key", "keys", "complaint"),
        [
            ("embedding_size", {"embedding_size": 6, "heads": 4}, "multiple of system.heads = 4"),
            ("embedding_size", {"embedding_size": 8, "heads": 3}, "multiple of system.heads = 3"),
            ("embedding_size", {"embedding_size": 9, "heads": 3}, "must be even"),
            ("embedding_size", {"embedding_size": 1, "heads": 1}, "must be from 2 to 65536"),
            ("heads", {"heads": 0}, "must be from 1 to 65536"),
            ("encoder_layers", {"encoder_layers": 0}, "must be from 1 to 1000"),
            ("decoder_layers", {"decoder_layers": 0}, "must be from 1 to 1000"),
            ("attention_layer", {"attention_layer": 7}, "must be at most 6"),
            ("attention_layer", {"attention_layer": 3, "decoder_layers": 2}, "must be at most 2"),
            ("attention_layer", {"attention_layer": -1}, "must be at least 0"),
            ("attention_head", {"attention_head": 9}, "must be at most 8"),
            ("attention_head", {"attention_head": 3, "heads": 2}, "must be at most 2"),
            ("word_dropout", {"word_dropout": 1.0}, "must be below 1"),
            ("word_replacement", {"word_replacement": 1.0}, "must be below 1"),
        ],
    )
    def test_what_cannot_be_is_refused(
        self, key: str, keys: dict[str, Any], complaint: str
    ) -> None:
        with pytest.raises(BadValue, match=f"^{key} = .*{complaint}") as raised:
            TransformerConfig(**keys)
        assert (raised.value.key, raised.value.value) == (key, keys[key])

    def test_the_last_layer_and_head_may_be_named(self) -> None:
        own = TransformerConfig(attention_layer=6, attention_head=8)
        assert (own.attention_layer, own.attention_head) == (6, 8)

    def test_the_number_of_parameters(self) -> None:
        """That of the specification for 5,131 sub-words with an SPM, in millions."""
        sizes = {"embedding_size": 256, "hidden_size": 1024, "heads": 4}
        own = small(**sizes, encoder_layers=4, decoder_layers=4)
        with torch.device("meta"):
            model = Transformer(SystemConfig.of(own, SourcePredictionConfig()), 5131)
        number = sum(one.numel() for one in model.parameters())
        assert number / 1e6 == pytest.approx(10.0, abs=0.06)


# --- model folders, and headlines -----------------------------------------------------------------


def write_folder(folder: Path, *addons: Any) -> Path:
    """The folder of a model far from its first values."""
    folder.mkdir()
    subwords = Subwords.learn(dict.fromkeys("abcdefghijklmnopqrstuvwxyz", 1), 0)
    tokenizer = Tokenizer(NATURAL, subwords)
    own = small(embedding_size=16, hidden_size=12, heads=4, attention_layer=1, attention_head=3)
    config = SystemConfig.of(own, *addons)
    write_description(folder, config, tokenizer)
    model, generator = build(config, tokenizer.vocabulary_size, 4), torch.Generator().manual_seed(1)
    for one in model.parameters():
        one.data += 0.3 * torch.randn(one.shape, generator=generator)
    save_file(model.state_dict(), folder / "model.safetensors")
    return folder


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Folders of models, by their names."""
    folder = tmp_path_factory.mktemp("models")
    all_addons = SelectiveGateConfig(), SourcePredictionConfig(c=3.0)
    return {
        "Transformer": write_folder(folder / "plain"),
        "Transformer+sGate+SPM": write_folder(folder / "all", *all_addons),
    }


NAMES = ["Transformer", "Transformer+sGate+SPM"]


class TestFolders:
    @pytest.mark.parametrize("name", NAMES)
    @pytest.mark.parametrize(
        ("storage", "tolerance"), [("float32", 0.0), ("float16", 0.003), ("int8", 0.05)]
    )
    def test_a_stored_model_is_the_model(
        self,
        folders: dict[str, Path],
        name: str,
        tmp_path: Path,
        storage: Any,
        tolerance: float,
    ) -> None:
        bundle = load_model(folders[name])
        assert bundle.name == name
        before: Any = bundle.model
        result = pack([folders[name]], tmp_path / storage, storage)
        packed: Any = load_model(result.folder).model
        assert packed.config == before.config
        assert packed.output.weight is packed.encoder.embedding.weight
        assert isinstance(packed, Transformer)
        stored = load_file(result.folder / "model.safetensors")
        assert (TABLE in stored, "output.weight" in stored) == (True, False)
        assert result.num_parameters == sum(one.numel() for one in before.parameters())
        pairs = before.pairs(Batch.of(PAIRS))
        with torch.no_grad():
            one, other = logits_of(before, pairs), logits_of(packed, pairs)
        assert one.std() > 0.5
        assert (one - other).std() <= tolerance * one.std()
        assert tolerance == 0 or not torch.equal(one, other)
        for weight_name, weight in packed.state_dict().items():
            if storage == "float32" or (storage == "int8" and weight.dim() == 1):
                assert torch.equal(weight, before.state_dict()[weight_name]), weight_name

    def test_a_loaded_model_is_that_of_the_reference(self, folders: dict[str, Path]) -> None:
        model: Any = load_model(folders["Transformer+sGate+SPM"]).model.double()
        losses = model(model.pairs(Batch.of(PAIRS)))
        for row, pair in enumerate(PAIRS):
            expected = see(model, pair, c=3.0)
            assert losses.named["target"][row].item() == pytest.approx(expected.target)
            assert losses.named["source"][row].item() == pytest.approx(expected.source)


@pytest.mark.filterwarnings("ignore::ledeline.core.errors.EngineWarning")
class TestHeadlines:
    TEXTS = ("a b c d e f", "xyz", "the quick brown fox jumps over the lazy dog", "no", "a b c d")

    @pytest.mark.parametrize("name", NAMES)
    @pytest.mark.parametrize("is_packed", [False, True])
    def test_it_writes_and_explains(
        self, folders: dict[str, Path], name: str, is_packed: bool, tmp_path: Path
    ) -> None:
        folder = folders[name]
        if is_packed:
            folder = pack([folder], tmp_path / "packed", "int8").folder
        headline = Headliner.load(folder, device="cpu")("a b c d e f", beam=4, explain=True)
        assert headline.text
        assert headline.alignment is not None
        sums = np.array(headline.alignment.attention).sum(1)
        np.testing.assert_allclose(sums, 1, atol=1e-5)
        assert (headline.alignment.spm is not None) == ("SPM" in name)
        assert len(headline.alignment.links) == len(headline.alignment.headline)

    @pytest.mark.parametrize("name", NAMES)
    def test_a_text_gets_the_same_alone_and_in_a_batch(
        self, folders: dict[str, Path], name: str
    ) -> None:
        headliner = Headliner.load(folders[name], device="cpu")
        together = headliner.generate_batch(self.TEXTS)
        assert len({one.text for one in together}) > 1
        for text, found in zip(self.TEXTS, together, strict=True):
            alone = headliner(text)
            assert found.text
            assert alone.text == found.text
            assert alone.score == pytest.approx(found.score, abs=1e-4)


def test_an_ensemble_with_encdec_is_the_mean_of_their_probabilities() -> None:
    """Systems of different kinds in one search; its cost is that of both, forced."""
    models = [random_model("sgate"), random_system("spm").double()]
    sources = [source for source, _ in PAIRS]
    found = search(Ensemble(models), *padded(sources), SearchConfig(beam=4))
    alone = [search(model, *padded(sources), SearchConfig(beam=4)) for model in models]
    for row, (source, (best, *_)) in enumerate(zip(sources, found, strict=True)):
        pairs = plain_pairs(Batch.of([(source, list(best.ids))]))
        logs = torch.stack([model.trace(pairs).log_probabilities[0] for model in models])
        logs = logs[:, : len(best.ids) + (not best.truncated)]
        cost = -(logs.logsumexp(0) - np.log(2)).sum().item()
        assert best.cost == pytest.approx(cost, abs=1e-9)
        assert any(best.cost != pytest.approx(one[row][0].cost) for one in alone)
