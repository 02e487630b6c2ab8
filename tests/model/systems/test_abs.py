"""ABS against a slow reference of its equations, and what its specification promises."""

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

from ledeline.core.errors import ModelError
from ledeline.data.dataset import Batch, padded
from ledeline.inference.traces import teacher_force
from ledeline.model.build import build
from ledeline.model.format.model_folder import load_model, write_description
from ledeline.model.layers.abs_encoders import SHORTEST, with_ends
from ledeline.model.system_config import SystemConfig
from ledeline.model.systems.abs import AbsConfig
from ledeline.search import search
from ledeline.text.profiles import NATURAL
from ledeline.text.subwords import Subwords
from ledeline.text.tokenizer import Tokenizer
from ledeline.train.optimizers import SgdConfig
from ledeline.train.schedules import PlateauSchedule
from model_reference import BOS, EOS, softmax, weights_of
from systems import random_system

ENCODERS = ["attention", "bow", "conv", "none"]
VOCABULARY = 11
# Shorter and longer than what convolutions need; headlines shorter and longer than the context.
PAIRS = [
    ([4, 5, 6, 7, 5], [4, 6, 7, 8, 9]),
    ([8], [9]),
    ([int(4 + number % 7) for number in range(19)], [6, 7]),
    ([int(4 + number * number % 7) for number in range(24)], []),
]


def config(encoder: str = "attention", **keys: Any) -> AbsConfig:
    sizes = {"embedding_size": 3, "hidden_size": 4, "encoder_size": 5, "context": 3, "filters": 6}
    return AbsConfig(**{"encoder": encoder, **sizes, **keys})


def model_of(encoder: str = "attention", std: float = 0.4, **keys: Any) -> Any:
    own = config(encoder, **keys)
    return random_system(system=own, vocabulary=VOCABULARY, std=std).double()


# --- the slow reference: one pair, one step at a time ---------------------------------------------


def window_sums(weights: dict[str, Any], words: list[Any], reach: int) -> list[Any]:
    found = []
    for place in range(len(words)):
        total = np.zeros_like(words[0])
        for near in range(place - reach, place + reach + 1):
            if 0 <= near < len(words):
                total = total + words[near]
        factor, bias = (weights[f"encoder.window_sum.{name}"][0] for name in ("factor", "bias"))
        found.append(factor * total + bias)
    return found


def convolved(weights: dict[str, Any], layer: int, values: list[Any]) -> list[Any]:
    """Rows of values -> rows of values, where the whole filter fits."""
    matrix, bias = (weights[f"encoder.layers.{layer}.{name}"] for name in ("weight", "bias"))
    found = []
    for start in range(len(values) - 4):
        row = bias.copy()
        for tap in range(5):
            row = row + matrix[:, :, tap] @ values[start + tap]
        found.append(row)
    return found


def convolutional(weights: dict[str, Any], words: list[Any]) -> Any:
    words = words + [np.zeros_like(words[0])] * (22 - len(words))
    first = convolved(weights, 0, words)
    pooled = [np.maximum(first[i], first[i + 1]) for i in range(0, len(first) - 1, 2)]
    second = convolved(weights, 1, [np.maximum(row, 0) for row in pooled])
    third = convolved(weights, 2, [np.maximum(row, 0) for row in second])
    return np.max(third, axis=0)


def mixed(weights: dict[str, Any], vector: Any) -> Any:
    return weights["encoder.mix.weight"] @ vector + weights["encoder.mix.bias"]


def encoded(
    weights: dict[str, Any], own: AbsConfig, source: list[int], context: list[int]
) -> tuple[Any, Any]:
    """enc(x, y_c), and the weights of attention over the source with its ends."""
    if own.encoder == "none":
        return np.zeros(0), None
    table = weights["encoder.embedding.weight"]
    words = [table[word] for word in [BOS] * 3 + source + [EOS] * 3]
    if own.encoder == "bow":
        return mixed(weights, sum(words) / len(words)), None
    if own.encoder == "conv":
        return mixed(weights, convolutional(weights, words)), None
    inputs = np.concatenate([weights["encoder.context_embedding.weight"][y] for y in context])
    query = weights["encoder.query.weight"] @ inputs + weights["encoder.query.bias"]
    attention = softmax([word @ query for word in words])
    sums = window_sums(weights, words, own.smoothing)
    return mixed(weights, sum(p * one for p, one in zip(attention, sums, strict=True))), attention


def steps(model: Any, source: list[int], headline: list[int]) -> list[tuple[Any, Any]]:
    """Log-probabilities (V,) and attention of each step, <eos> included."""
    weights, own = weights_of(model), model.config.system
    written, found = [BOS] * own.context, []
    for word in [*headline, EOS]:
        context = written[-own.context :]
        inputs = np.concatenate([weights["embedding.weight"][y] for y in context])
        hidden = np.tanh(weights["hidden.weight"] @ inputs + weights["hidden.bias"])
        enc, attention = encoded(weights, own, source, context)
        logits = weights["output.weight"] @ np.concatenate([hidden, enc]) + weights["output.bias"]
        found.append((np.log(softmax(logits)), attention))
        written.append(word)
    return found


@pytest.mark.parametrize("encoder", ENCODERS)
class TestReference:
    @pytest.fixture
    def model(self, encoder: str) -> Any:
        return model_of(encoder)

    def test_losses_and_trace(self, model: Any) -> None:
        pairs = model.pairs(Batch.of(PAIRS))
        losses, seen = model(pairs), model.trace(pairs)
        for row, (source, headline) in enumerate(PAIRS):
            targets = [*headline, EOS]
            logs = [
                log[word]
                for (log, _), word in zip(steps(model, source, headline), targets, strict=True)
            ]
            found = seen.log_probabilities[row, : len(targets)].detach().numpy()
            np.testing.assert_allclose(found, logs, rtol=0, atol=1e-12)
            assert losses.named["target"][row].item() == pytest.approx(-sum(logs), abs=1e-11)
            assert losses.headline[row].item() == pytest.approx(-sum(logs), abs=1e-11)

    def test_steps_of_a_search(self, model: Any) -> None:
        ids, lengths = padded([source for source, _ in PAIRS])
        mask = torch.from_numpy(np.arange(ids.shape[1]) < lengths[:, None])
        state, memory = model.encode(torch.from_numpy(ids), torch.from_numpy(lengths), mask)
        words, written = torch.full((len(PAIRS), 1), BOS), [5, 9, 4, 10]
        expected = [steps(model, source, written) for source, _ in PAIRS]
        for j, word in enumerate([*written, EOS]):
            logs, state = model.step(words, state, memory)
            for row in range(len(PAIRS)):
                found = logs[row, 0].detach().numpy()
                np.testing.assert_allclose(found, expected[row][j][0], rtol=0, atol=1e-12)
            words = torch.full((len(PAIRS), 1), word)

    def test_attention_of_a_trace_is_that_of_the_words(self, model: Any, encoder: str) -> None:
        """What the ends of a source get is left out, and the rest sums to 1."""
        seen = model.trace(model.pairs(Batch.of(PAIRS))).attention
        if encoder != "attention":
            assert seen is None
            return
        for row, (source, headline) in enumerate(PAIRS):
            for j, (_, attention) in enumerate(steps(model, source, headline)):
                own = attention[3:-3] / attention[3:-3].sum()
                found = seen[row, j].detach().numpy()
                np.testing.assert_allclose(found[: len(source)], own, rtol=0, atol=1e-12)
                assert not found[len(source) :].any()

    def test_a_pair_is_the_same_in_any_batch(self, model: Any) -> None:
        together = model(model.pairs(Batch.of(PAIRS))).named["target"]
        for row, pair in enumerate(PAIRS):
            alone = model(model.pairs(Batch.of([pair]))).named["target"][0]
            torch.testing.assert_close(together[row], alone, rtol=0, atol=1e-12)

    def test_padding_is_never_read(self, model: Any) -> None:
        """Whatever words are there, no bit changes."""
        pairs = model.pairs(Batch.of(PAIRS))
        other = replace(
            pairs,
            sources=pairs.sources.where(pairs.source_mask, 9),
            targets=pairs.targets.where(pairs.target_mask, 8),
        )
        assert not torch.equal(pairs.sources, other.sources)
        assert torch.equal(model(pairs).named["target"], model(other).named["target"])

    def test_every_parameter_learns(self, model: Any) -> None:
        model(model.pairs(Batch.of(PAIRS))).total().sum().backward()
        for name, parameter in model.named_parameters():
            assert parameter.grad.abs().max() > 0, name

    def test_search_and_forced_scores_agree(self, model: Any) -> None:
        for (source, _), (best, *_) in zip(
            PAIRS, search(model, *padded([source for source, _ in PAIRS])), strict=True
        ):
            pairs = model.pairs(Batch.of([(source, list(best.ids))]))
            number = len(best.ids) + (not best.truncated)
            forced = model.trace(pairs).log_probabilities[0, :number].sum().item()
            assert -best.cost == pytest.approx(forced, abs=1e-9)

    def test_it_is_the_same_after_saving(self, model: Any, tmp_path: Path) -> None:
        tokenizer = Tokenizer(NATURAL, Subwords.learn(dict.fromkeys("abcdef", 1), 0))
        model = build(model.config, tokenizer.vocabulary_size, seed=4).eval()
        write_description(tmp_path, model.config, tokenizer)
        save_file(model.state_dict(), tmp_path / "model.safetensors")
        again = load_model(tmp_path).model.eval()
        assert again.config == model.config
        pairs = model.pairs(Batch.of(PAIRS))
        assert torch.equal(again(pairs).named["target"], model(pairs).named["target"])


# --- the tests of the specification ---------------------------------------------------------------


@pytest.mark.parametrize("encoder", ENCODERS[:3])
def test_without_the_encoders_weights_it_is_the_language_model(encoder: str) -> None:
    """Test 1: and the distribution sums to 1."""
    model, plain = model_of(encoder), model_of("none")
    with torch.no_grad():
        for name in ("embedding", "hidden"):
            getattr(plain, name).load_state_dict(getattr(model, name).state_dict())
        plain.output.bias.copy_(model.output.bias)
        plain.output.weight.copy_(model.output.weight[:, :4])
    logs = [one.step(torch.tensor([[7]]), *encode(one, [4, 9, 5]))[0] for one in (model, plain)]
    assert not torch.allclose(*logs)
    assert logs[0].exp().sum().item() == pytest.approx(1, abs=1e-12)
    with torch.no_grad():
        model.output.weight[:, 4:] = 0
    for source in ([4, 9, 5], [6], list(range(4, 11)) * 4):
        found, expected = (
            one.step(torch.tensor([[7]]), *encode(one, source))[0] for one in (model, plain)
        )
        torch.testing.assert_close(found, expected, rtol=0, atol=1e-12)


def encode(model: Any, source: list[int]) -> Any:
    return model.encode(torch.tensor([source]))


def test_a_bag_of_words_has_no_order() -> None:
    """Test 2, first half; convolutions have one."""
    source, other = [4, 5, 6, 7, 8, 4, 9], [9, 4, 8, 6, 7, 4, 5]
    for encoder, alike in (("bow", True), ("conv", False), ("attention", False)):
        model = model_of(encoder)
        (one,), (two,) = (
            model.encoder(torch.full((1, 1, 3), BOS), encode(model, words)[1])[0]
            for words in (source, other)
        )
        assert torch.allclose(one, two, rtol=0, atol=1e-12) == alike


def test_attention_that_asks_nothing_is_a_bag_of_words() -> None:
    """Test 2, second half: P_m = 0, windows of one word."""
    attention, bow = model_of("attention", smoothing=0), model_of("bow")
    with torch.no_grad():
        for name in ("embedding", "mix"):
            getattr(bow.encoder, name).load_state_dict(
                getattr(attention.encoder, name).state_dict()
            )
        for values in (*attention.encoder.query.parameters(), attention.encoder.window_sum.bias):
            values.zero_()
        attention.encoder.window_sum.factor.fill_(1)
    batch = with_ends(*sources_of(PAIRS))
    context = torch.full((len(PAIRS), 2, 3), 7)
    found, expected = (one.encoder(context, one.encoder.memory(batch)) for one in (attention, bow))
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-12)


def sources_of(pairs: list[tuple[list[int], list[int]]]) -> tuple[torch.Tensor, torch.Tensor]:
    ids, lengths = padded([source for source, _ in pairs])
    return torch.from_numpy(ids), torch.from_numpy(np.arange(ids.shape[1]) < lengths[:, None])


def test_weights_of_attention_are_a_distribution_over_words_and_ends() -> None:
    """Test 3. What is mixed is each window in turn, so the weights themselves come out."""
    model = model_of("attention", encoder_size=30, smoothing=0, std=0.1)
    encoder, batch = model.encoder, with_ends(*sources_of(PAIRS))
    with torch.no_grad():
        encoder.mix.weight.copy_(torch.eye(30))
        encoder.mix.bias.zero_()
    memory = encoder.memory(batch)
    windows = torch.eye(30).double().expand(len(PAIRS), 30, 30)  # L = 24 + 6 = P
    assert batch.ids.shape[1] == 30
    weights = encoder(torch.tensor([[[4, 5, 6]]] * len(PAIRS)), memory._replace(windows=windows))
    assert batch.mask is not None
    assert torch.equal(weights.squeeze(1) > 0, batch.mask)  # exactly 0 elsewhere
    torch.testing.assert_close(weights.sum(-1), torch.ones(len(PAIRS), 1).double())


@pytest.mark.parametrize("encoder", ENCODERS)
def test_words_older_than_the_context_change_nothing(encoder: str) -> None:
    """Test 4; and the oldest word of the context does change something."""
    model, source, older = model_of(encoder), [4, 5, 6], [4, 5, 6, 7, 8, 9]
    assert model.context_size == 3

    def last(headline: list[int]) -> float:
        seen = model.trace(model.pairs(Batch.of([(source, headline)])))
        return seen.log_probabilities[0, -1].item()  # type: ignore[no-any-return]

    assert last([9, 10, 4, *older[-3:]]) == last(older)
    assert last([*older[:3], 4, *older[-2:]]) != last(older)


def test_ends_are_put_around_each_source() -> None:
    ids, mask = with_ends(*sources_of([([5, 6], []), ([7, 8, 9, 10], [])]))
    assert mask is not None
    assert [row[own].tolist() for row, own in zip(ids, mask, strict=True)] == [
        [BOS] * 3 + [5, 6] + [EOS] * 3,
        [BOS] * 3 + [7, 8, 9, 10] + [EOS] * 3,
    ]
    alone = with_ends(torch.tensor([[5, 6]]), None)
    assert (alone.ids.tolist(), alone.mask) == ([[BOS] * 3 + [5, 6] + [EOS] * 3], None)


def test_sixteen_words_are_enough_for_convolutions() -> None:
    assert SHORTEST == 16 + 6


def test_a_headline_cannot_be_explained_without_attention() -> None:
    for encoder in ENCODERS[1:]:
        with pytest.raises(ModelError, match="no attention"):
            next(teacher_force(model_of(encoder), PAIRS))
    (seen, *_) = teacher_force(model_of(), PAIRS)
    np.testing.assert_allclose(seen.attention.sum(-1), 1, rtol=1e-6)


# --- training -------------------------------------------------------------------------------------


def lengths_of(table: Any) -> Any:
    return table.weight.detach().norm(dim=1)


@pytest.mark.parametrize("encoder", ENCODERS)
def test_long_rows_of_embeddings_are_cut_at_the_start_of_an_epoch(encoder: str) -> None:
    """F of the bag of words is left alone, as in the released code."""
    model = model_of(encoder, std=1.0)
    tables = {
        name: layer
        for name, layer in model.named_modules()
        if isinstance(layer, torch.nn.Embedding)
    }
    assert len(tables) == {"attention": 3, "none": 1}.get(encoder, 2)
    with torch.no_grad():
        for table in tables.values():
            table.weight[4] *= 0.1 / table.weight[4].norm()
    before = {name: value.clone() for name, value in model.state_dict().items()}
    model.start_epoch()
    for name, value in model.state_dict().items():
        table, _, _ = name.rpartition(".")
        if table not in tables or (encoder == "bow" and table == "encoder.embedding"):
            assert torch.equal(value, before[name]), name
            continue
        assert torch.equal(value[4], before[name][4])
        lengths = before[name].norm(dim=1)
        assert lengths.max() > 1
        torch.testing.assert_close(lengths_of(tables[table]), lengths.clamp(max=1))
        torch.testing.assert_close(value * lengths.clamp(min=1)[:, None], before[name])
        assert value.requires_grad == before[name].requires_grad


def test_first_values_are_those_of_torch7() -> None:
    own = config("conv", embedding_size=40, hidden_size=50, filters=30)
    model: Any = build(SystemConfig(system=own), 2000, seed=1)
    assert model.embedding.weight.std().item() == pytest.approx(1, rel=0.02)
    for layer, inputs in (
        (model.hidden, 3 * 40),
        (model.output, 50 + 5),
        (model.encoder.layers[1], 30 * 5),
    ):
        bound = 1 / math.sqrt(inputs)
        assert 0.95 * bound < layer.weight.abs().max() <= bound
        assert 0.5 * bound < layer.bias.abs().max() <= bound
    again: Any = build(SystemConfig(system=own), 2000, seed=1)
    assert torch.equal(again.output.weight, model.output.weight)
    attention: Any = build(SystemConfig(system=config()), 20, seed=1)
    window_sum = attention.encoder.window_sum
    assert (window_sum.factor.item(), window_sum.bias.item()) == (pytest.approx(1 / 5), 0)


def test_its_recipe_is_plain_gradient_descent() -> None:
    from ledeline.config import DataConfig
    from ledeline.train.train_config import TrainConfig

    found = TrainConfig(data=DataConfig(dataset=Path("somewhere")), system=AbsConfig())
    assert found.optimizer == SgdConfig(learning_rate=0.1)
    assert found.schedule == PlateauSchedule(compare_with="previous")


def test_dropout_is_before_the_output_and_only_in_training() -> None:
    model = model_of(dropout=0.5).train()
    pairs = model.pairs(Batch.of(PAIRS))
    torch.manual_seed(1)
    one, other = model(pairs).named["target"], model(pairs).named["target"]
    assert not torch.equal(one, other)
    with torch.no_grad():
        model.output.weight.zero_()  # then nothing is left to drop
    assert torch.equal(model(pairs).named["target"], model(pairs).named["target"])


# --- words of headlines, one at a time ------------------------------------------------------------


@pytest.mark.parametrize("encoder", ENCODERS)
def test_the_losses_of_all_words_are_the_loss_of_the_pair(encoder: str) -> None:
    model = model_of(encoder)
    whole = model(model.pairs(Batch.of(PAIRS))).named["target"]
    seen = model.trace(model.pairs(Batch.of(PAIRS))).log_probabilities
    sums = [0.0] * len(PAIRS)
    for position in range(6):
        rows = [row for row, (_, headline) in enumerate(PAIRS) if position <= len(headline)]
        batch = Batch.of([PAIRS[row] for row in rows])
        words = replace(batch, positions=np.full(len(rows), position))
        losses = model(model.pairs(words))
        for row, loss in zip(rows, losses.named["target"], strict=True):
            assert loss.item() == pytest.approx(-seen[row, position].item(), abs=1e-12)
            sums[row] += loss.item()
        assert torch.equal(losses.headline, losses.named["target"])
    assert sums == pytest.approx(whole.tolist(), abs=1e-11)


def test_only_the_steps_that_count_are_computed(monkeypatch: pytest.MonkeyPatch) -> None:
    model, shapes = model_of(), []
    inner = model._states
    monkeypatch.setattr(
        model,
        "_states",
        lambda contexts, *rest: shapes.append(contexts.shape) or inner(contexts, *rest),
    )
    batch = Batch.of(PAIRS)
    model(model.pairs(batch))
    model(model.pairs(replace(batch, positions=np.array([5, 0, 1, 0]))))
    assert shapes == [(4, 6, 3), (4, 1, 3)]
