"""What must not change anything: the batch a pair is in, the path taken, saving and loading."""

import dataclasses
from collections.abc import Sequence
from typing import cast

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from ledeline.data.dataset import Batch
from ledeline.model.attention_system import SearchState
from ledeline.search.step_model import map_tensors

EQUAL = [([4, 5, 6, 7, 5], [4, 6]), ([9, 8, 6, 4, 10], [5, 5, 4, 7]), ([7, 7, 1, 7, 7], [7])]
MIXED = [([8, 9, 4], [9, 10]), *EQUAL, ([10, 4], [6]), ([5, 6, 7, 8, 9, 10, 4], [5, 1])]


def learned(model, pairs) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    """The losses of each pair, and the gradients of what training minimises."""
    model.zero_grad()
    losses = model(pairs)
    losses.total().sum().backward()
    gradients = {
        name: torch.zeros_like(value) if value.grad is None else value.grad.clone()
        for name, value in model.named_parameters()
    }
    parts = {"headline": losses.headline, **losses.named}
    return {name: part.detach() for name, part in parts.items()}, gradients


def same(found: dict[str, Tensor], expected: dict[str, Tensor]) -> None:
    assert found.keys() == expected.keys()
    for name in found:
        torch.testing.assert_close(found[name], expected[name], rtol=0, atol=1e-11, msg=name)


def together(parts: Sequence[dict[str, Tensor]], join) -> dict[str, Tensor]:
    return {name: join([part[name] for part in parts]) for name in parts[0]}


def added(tensors: list[Tensor]) -> Tensor:
    return torch.stack(tensors).sum(0)


class TestBatches:
    @pytest.mark.parametrize("layers", [1, 2, 3])
    def test_a_mixed_batch_is_its_pairs_one_by_one(self, make, system, layers):
        model = make(system, layers=layers)
        losses, gradients = learned(model, model.pairs(Batch.of(MIXED)))
        alone = [learned(model, model.pairs(Batch.of([pair]))) for pair in MIXED]
        same(losses, together([one for one, _ in alone], torch.cat))
        same(gradients, together([one for _, one in alone], added))

    def test_an_equal_length_batch_takes_the_masked_path_as_well(self, make, system):
        model = make(system)
        plain = model.pairs(Batch.of(EQUAL))
        assert plain.source_lengths is None
        assert plain.source_mask is None
        places, steps = torch.arange(5), torch.arange(plain.targets.shape[1])
        num_steps = torch.tensor([5 if "SPM" in system else len(head) + 1 for _, head in EQUAL])
        masked = dataclasses.replace(
            plain,
            source_lengths=torch.full((3,), 5),
            source_mask=(places < 5).expand(3, 5),
            target_mask=steps < num_steps.unsqueeze(1),
        )
        (losses, gradients), (other, others) = learned(model, plain), learned(model, masked)
        same(losses, other)
        same(gradients, others)

    def test_a_longer_pair_beside_them_changes_nothing(self, make, system):
        model = make(system)
        losses, gradients = learned(model, model.pairs(Batch.of(EQUAL)))
        longer, own = learned(model, model.pairs(Batch.of([MIXED[-1]])))
        mixed = model.pairs(Batch.of([*EQUAL, MIXED[-1]]))
        assert mixed.source_lengths is not None
        other, others = learned(model, mixed)
        same(other, together([losses, longer], torch.cat))
        same(others, together([gradients, own], added))

    def test_the_order_of_the_pairs(self, make, system):
        model = make(system)
        losses, gradients = learned(model, model.pairs(Batch.of(MIXED)))
        other, others = learned(model, model.pairs(Batch.of(MIXED[::-1])))
        same(losses, {name: one.flip(0) for name, one in other.items()})
        same(gradients, others)


class TestSteps:
    @pytest.mark.parametrize("layers", [1, 2, 3])
    @pytest.mark.parametrize("width", [1, 3])
    def test_unroll_is_step_after_step(self, make, system, layers, width):
        model = make(system, layers=layers)
        pairs = model.pairs(Batch.of(MIXED))
        forced = model.trace(pairs)
        state, memory = model.encode(pairs.sources, pairs.source_lengths, pairs.source_mask)
        state = spread(state, width)
        for j in range(pairs.targets.shape[1]):
            words = pairs.previous[:, j : j + 1].expand(-1, width)
            logs, state = model.step(words, state, memory)
            assert logs.shape == (len(MIXED), width, 11)
            torch.testing.assert_close(logs.exp().sum(-1), torch.ones_like(logs[..., 0]))
            wanted = pairs.targets[:, j].view(-1, 1, 1).expand(-1, width, 1)
            found = logs.gather(-1, wanted).squeeze(-1)
            expected = forced.log_probabilities[:, j : j + 1].expand(-1, width)
            torch.testing.assert_close(found, expected, rtol=0, atol=1e-11)
            attentional = forced.states[:, j : j + 1].expand(-1, width, -1)
            torch.testing.assert_close(state.decoder.attentional, attentional, rtol=0, atol=1e-11)

    def test_hypotheses_side_by_side_do_not_see_each_other(self, make, system):
        model = make(system)
        pairs = model.pairs(Batch.of(MIXED))
        start, memory = model.encode(pairs.sources, pairs.source_lengths, pairs.source_mask)
        hypotheses = [[2, 5, 6], [2, 9, 4]]
        both = spread(start, 2)
        alone = [start, start]
        for words in zip(*hypotheses, strict=True):
            logs, both = model.step(torch.tensor(words).expand(len(MIXED), 2), both, memory)
            for k, word in enumerate(words):
                own, alone[k] = model.step(torch.full((len(MIXED), 1), word), alone[k], memory)
                torch.testing.assert_close(logs[:, k : k + 1], own, rtol=0, atol=1e-11)


def spread(state: SearchState, width: int) -> SearchState:
    """So many hypotheses, all alike. (B, 1, H) -> (B, K, H)."""
    return cast(SearchState, map_tensors(state, lambda one: one.expand(-1, width, -1)))


def test_saved_and_loaded_it_is_the_same(make, system, tmp_path):
    model = make(system, spread=0.0).float()
    save_file(model.state_dict(), tmp_path / "model.safetensors")
    other = make(system, seed=5).float()
    pairs = model.pairs(Batch.of(MIXED))
    assert not torch.equal(model(pairs).named["target"], other(pairs).named["target"])
    other.load_state_dict(load_file(tmp_path / "model.safetensors"))
    losses, others = model(pairs), other(pairs)
    assert torch.equal(losses.total(), others.total())
    assert torch.equal(losses.headline, others.headline)
    for found, expected in zip(other.trace(pairs), model.trace(pairs), strict=True):
        assert found is expected or torch.equal(found, expected)
