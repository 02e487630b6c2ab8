"""Copying against NumPy loops, and what the mixture promises."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch.nn import functional

from addon_reference import PAIRS, steps_of
from ledeline.data.dataset import Batch, padded
from ledeline.inference.engine_weights import refusal
from ledeline.model.addons.addon import Sizes, View
from ledeline.model.addons.pointer_copy import PointerCopy, PointerCopyConfig
from ledeline.model.build import build
from ledeline.model.system_config import SystemConfig
from ledeline.model.systems.encdec import EncDecConfig
from ledeline.model.systems.gru import GruConfig
from ledeline.search import search
from ledeline.search.step_model import map_tensors
from ledeline.text.subwords import PAD
from model_reference import BOS, EOS, below, sigmoid, weights_of
from systems import random_system

VOCABULARY = 11
SOURCES = padded([source for source, _ in PAIRS])
COMBINATIONS = [("copy",), ("sgate", "copy"), ("spm", "copy"), ("sgate", "spm", "copy")]


# --- the definition, slowly -----------------------------------------------------------------------


def generation_shares(weights, seen):
    """p_j of each step."""
    own, embedding = below(weights, "copy."), weights["decoder.embedding.weight"]
    shares = []
    for z, alpha, word in zip(seen.z, seen.alphas, seen.words, strict=True):
        context = np.zeros(seen.values.shape[1])
        for weight, value in zip(alpha, seen.values, strict=True):
            context = context + weight * value
        score = own["of_context.weight"][0] @ context + own["of_state.weight"][0] @ z
        score += own["of_word.weight"][0] @ embedding[word] + own["of_word.bias"][0]
        shares.append(sigmoid(score))
    return shares


def mixtures(weights, source, headline):
    """P_j of each step, word by word, and the targets."""
    seen = steps_of(weights, source, headline)
    mixed = []
    for base, alpha, share in zip(
        seen.base, seen.alphas, generation_shares(weights, seen), strict=True
    ):
        row = [share * probability for probability in base]
        for i, word in enumerate(source):
            row[word] += (1 - share) * alpha[i]
        mixed.append(row)
    return np.array(mixed), seen.targets


def step_logs(model: Any, source: list[int], words: list[int]) -> torch.Tensor:
    """What search sees step by step: (J, V)."""
    state, memory = model.encode(torch.tensor([source]))
    rows = []
    for word in words:
        logs, state = model.step(torch.tensor([[word]]), state, memory)
        rows.append(logs[0, 0])
    return torch.stack(rows).detach()


def generating(model: Any, logit: float) -> Any:
    """The model with the same p_j at every step."""
    for layer in ("of_context", "of_state", "of_word"):
        torch.nn.init.zeros_(getattr(model.addons["copy"], layer).weight)
    torch.nn.init.constant_(model.addons["copy"].of_word.bias, logit)
    return model


# --- equations ------------------------------------------------------------------------------------


@pytest.mark.parametrize("names", COMBINATIONS, ids="+".join)
def test_losses_traces_and_search_are_those_of_the_definition(names: tuple[str, ...]) -> None:
    model = random_system(*names).double()
    weights = weights_of(model)
    pairs = model.pairs(Batch.of(PAIRS))
    losses, seen = model(pairs), model.trace(pairs)
    for row, (source, headline) in enumerate(PAIRS):
        mixed, targets = mixtures(weights, source, headline)
        logs = [math.log(mixed[j, word]) for j, word in enumerate(targets)]
        target, end = -sum(logs), -sum(logs[: len(headline) + 1])
        assert losses.named["target"][row].item() == pytest.approx(target, rel=1e-9)
        assert losses.headline[row].item() == pytest.approx(end, rel=1e-9)
        traced = seen.log_probabilities[row, : len(targets)].detach().numpy()
        np.testing.assert_allclose(traced, logs, rtol=1e-9)
        found = step_logs(model, source, [BOS, *targets[:-1]])
        np.testing.assert_allclose(found.exp().numpy(), mixed, rtol=1e-9, atol=1e-11)
    assert tuple(losses.named) == (("target", "source") if "spm" in names else ("target",))


def test_with_grus_the_search_score_is_the_forced_score() -> None:
    own = GruConfig(embedding_size=3, hidden_size=4, dropout=0.0)
    model = random_system("copy", system=own).double()
    for (source, _), (best, *_) in zip(PAIRS, search(model, *SOURCES), strict=True):
        pairs = model.pairs(Batch.of([(source, list(best.ids))]))
        logs = model.trace(pairs).log_probabilities[0, : len(best.ids) + (not best.truncated)]
        assert -best.cost == pytest.approx(logs.sum().item(), abs=1e-9)


# --- the specification's tests: section 7, number 5 -----------------------------------------------


def test_all_words_sum_to_one() -> None:
    model = random_system("copy").double()
    sums = step_logs(model, PAIRS[0][0], [BOS, 4, 9]).exp().sum(-1)
    torch.testing.assert_close(sums, torch.ones_like(sums), rtol=0, atol=1e-12)
    scores = torch.randn(3, 6, VOCABULARY).double()
    view = _view(model, model.pairs(Batch.of(PAIRS)))
    mixed, _ = model.addons["copy"].scores(scores, view, None)
    assert (mixed.exp().sum(-1) - 1).abs().max() < 1e-10  # before any softmax


def _view(model: Any, pairs: Any) -> Any:
    begun, unrolled = model._follow(pairs)
    return model._view(pairs, begun, unrolled)


def test_generating_alone_is_the_base_system() -> None:
    model = generating(random_system("copy").double(), 1000.0)
    plain = random_system().double()
    plain.load_state_dict(model.state_dict(), strict=False)
    pairs = model.pairs(Batch.of(PAIRS))
    torch.testing.assert_close(model(pairs).named, plain(pairs).named, rtol=1e-12, atol=0)
    found, expected = search(model, *SOURCES), search(plain, *SOURCES)
    assert [[one.ids for one in some] for some in found] == [
        [one.ids for one in some] for some in expected
    ]


def test_what_the_base_cannot_write_has_its_mass_from_copying_alone() -> None:
    model = generating(random_system("copy").double(), 0.3)
    with torch.no_grad():
        model.output.bias[[5, 9]] = -1e9
    source = [4, 5, 6, 7, 5]
    logs = step_logs(model, source, [BOS])
    pairs = model.pairs(Batch.of([(source, [4])]))
    alpha = model.trace(pairs).attention[0, 0].detach()
    copied = (1 - sigmoid(0.3)) * (alpha[1] + alpha[4]).item()
    assert logs[0, 5].exp().item() == pytest.approx(copied, rel=1e-9)
    assert logs[0, 9].exp().item() < 1e-11  # it is not in the source


def test_repeated_source_words_add_up() -> None:
    """With copying alone a word has what attention gives to all its places."""
    model = generating(random_system("copy").double(), -1000.0)
    source = [7, 5, 7, 7, 6]
    alpha = model.trace(model.pairs(Batch.of([(source, [7])]))).attention[0, 0].detach()
    written = step_logs(model, source, [BOS])[0].exp()
    assert written[7].item() == pytest.approx((alpha[0] + alpha[2] + alpha[3]).item(), rel=1e-9)
    assert written[5].item() == pytest.approx(alpha[1].item(), rel=1e-9)
    assert written[EOS].item() == pytest.approx(1e-12, rel=1e-6)  # the smallest, not 0


# --- traps ----------------------------------------------------------------------------------------


def test_padding_of_the_source_is_never_copied() -> None:
    model = generating(random_system("copy").double(), -1000.0)
    batch = model.pairs(Batch.of(PAIRS))
    assert batch.source_mask is not None
    state, memory = model.encode(batch.sources, batch.source_lengths, batch.source_mask)
    logs, _ = model.step(torch.full((len(PAIRS), 1), BOS), state, memory)
    assert (logs[:, 0, 0].exp() < 1e-11).all()  # <pad>, the id of padding


@pytest.mark.parametrize("logit", [-1000.0, -1.0, 1000.0])
def test_gradients_are_finite_also_where_nothing_is_copied_or_generated(logit: float) -> None:
    model = generating(random_system("copy"), logit)
    model(model.pairs(Batch.of(PAIRS))).total().sum().backward()
    assert all(parameter.grad.isfinite().all() for parameter in model.parameters())


def test_attention_learns_from_copying() -> None:
    """The gradient of what attention multiplies with is that of finite differences."""
    model = random_system("copy").double()
    pairs = model.pairs(Batch.of(PAIRS))
    weights = model.decoder.attention.bilinear
    (gradient,) = torch.autograd.grad(model(pairs).total().sum(), weights)
    step, found = 1e-6, []
    with torch.no_grad():
        for change in (step, -2 * step):
            weights[1, 2] += change
            found.append(model(pairs).total().sum().item())
    expected = (found[0] - found[1]) / (2 * step)
    assert gradient[1, 2].item() == pytest.approx(expected, rel=1e-5)


def test_label_smoothing_is_of_the_mixture() -> None:
    model = random_system("copy").double()
    pairs = model.pairs(Batch.of([PAIRS[0]]))
    logs = step_logs(model, PAIRS[0][0], pairs.previous[0].tolist())
    model.train()
    model.label_smoothing = 0.1
    losses = model(pairs)
    share = torch.full_like(logs, 0.1 / (logs.shape[-1] - 2))
    share[:, [PAD, BOS]] = 0.0  # which no headline has
    wanted = 0.9 * functional.one_hot(pairs.targets[0], logs.shape[-1]) + share
    expected = functional.cross_entropy(logs, wanted, reduction="sum")
    torch.testing.assert_close(losses.named["target"][0], expected)
    plain = functional.nll_loss(logs, pairs.targets[0], reduction="sum")
    torch.testing.assert_close(losses.headline[0], plain)
    losses.total().sum().backward()
    assert all(parameter.grad.isfinite().all() for parameter in model.parameters())


def test_hypotheses_of_one_parent_copy_each_for_itself() -> None:
    model = random_system("copy").double()
    state, memory = model.encode(torch.tensor([[4, 5, 6]]))
    _, parent = model.step(torch.tensor([[BOS]]), state, memory)
    two = map_tensors(parent, lambda leaf: leaf.repeat_interleave(2, 1))
    logs, _ = model.step(torch.tensor([[7, 8]]), two, memory)
    assert not torch.allclose(logs[:, 0], logs[:, 1])
    for slot, word in enumerate((7, 8)):
        alone, _ = model.step(torch.tensor([[word]]), parent, memory)
        torch.testing.assert_close(logs[:, slot], alone[:, 0])


def test_what_attention_mixes_may_have_a_size_of_its_own() -> None:
    addon = PointerCopy(PointerCopyConfig(), Sizes(VOCABULARY, 3, 4, own_states=6))
    view = View(
        torch.randn(2, 3, 4),
        torch.randn(2, 3, 5).softmax(-1),
        torch.randint(VOCABULARY, (2, 3)),
        torch.randint(VOCABULARY, (2, 5)),
        None,
        values=torch.randn(2, 5, 6),
        embedding=torch.randn(VOCABULARY, 3),
    )
    mixed, _ = addon.scores(torch.randn(2, 3, VOCABULARY), view, None)
    torch.testing.assert_close(mixed.exp().sum(-1), torch.ones(2, 3))


def test_at_first_half_is_generated() -> None:
    own = EncDecConfig(embedding_size=3, hidden_size=4)
    model: Any = build(SystemConfig.of(own, PointerCopyConfig()), VOCABULARY, seed=1).eval()
    assert model.addons["copy"].of_word.bias.item() == 0
    shares = model.addons["copy"].gate_logits(_view(model, model.pairs(Batch.of(PAIRS)))).sigmoid()
    assert ((shares > 0.45) & (shares < 0.55)).all()


@pytest.mark.parametrize("training", [True, False])
def test_autocast_computes_about_the_same(training: bool) -> None:
    model = random_system("copy", "wfe")
    pairs = model.pairs(Batch.of(PAIRS))
    with torch.set_grad_enabled(training):
        expected = model(pairs).named["target"]
        with torch.autocast("cpu", torch.bfloat16):
            found = model(pairs).named["target"]
    assert found.dtype == torch.float32
    torch.testing.assert_close(found, expected, rtol=0.05, atol=0.05)


def test_engines_refuse_it_and_folders_keep_it(stored: Callable[..., tuple[Any, Any]]) -> None:
    own = EncDecConfig(embedding_size=6, hidden_size=8)
    model, again = stored(SystemConfig.of(own, PointerCopyConfig()))
    assert again.config.name == "EncDec+copy"
    assert refusal(again) == "it does not know the add-on copy"
    pairs = model.pairs(Batch.of(PAIRS))
    assert torch.equal(again(pairs).named["target"], model(pairs).named["target"])
    assert search(again, *SOURCES) == search(model, *SOURCES)
