"""The SPM is free where headlines are written: no part of it runs, and none is needed."""

import pytest
import torch

from ledeline.data.dataset import Batch
from ledeline.text.subwords import BOS, EOS, PAD

PAIRS = [([4, 5, 6, 7, 5], [4, 6]), ([8, 9, 4], [9]), ([10, 4], [6])]


def written(model, pairs, steps=12):
    """The likeliest word after the likeliest word, and the log-probabilities of all steps."""
    state, memory = model.encode(pairs.sources, pairs.source_lengths, pairs.source_mask)
    words = torch.full((len(pairs.sources), 1), BOS)
    headlines, seen = [], []
    for _ in range(steps):
        logs, state = model.step(words, state, memory)
        seen.append(logs)
        allowed = logs.clone()
        allowed[..., [PAD, BOS]] = float("-inf")
        words = allowed.argmax(-1)
        headlines.append(words)
    rows = torch.cat(headlines, 1).tolist()
    ended = [row[: row.index(EOS)] if EOS in row else row for row in rows]
    return ended, torch.cat(seen, 1)


@pytest.mark.parametrize("gate", ["", "+sGate"])
@pytest.mark.parametrize("way", ["head taken away", "system without it"])
def test_the_same_headlines_without_the_head(make, gate, way):
    model = make(f"EncDec{gate}+SPM")
    pairs = model.pairs(Batch.of(PAIRS))
    headlines, logs = written(model, pairs)
    assert any(headlines)
    if way == "head taken away":
        del model.addons["spm"], model.spm
        other = model
    else:
        other = make(f"EncDec{gate}", seed=4)
        left = other.load_state_dict(model.state_dict(), strict=False)
        assert left.missing_keys == []
        assert all(name.startswith("spm.") for name in left.unexpected_keys)
    others, other_logs = written(other, pairs)
    assert others == headlines
    assert torch.equal(other_logs, logs)
    assert other.loss_names == ("target",)


@pytest.mark.parametrize("gate", ["", "+sGate"])
def test_the_head_is_never_called(make, gate):
    model = make(f"EncDec{gate}+SPM")
    pairs = model.pairs(Batch.of(PAIRS))

    def fail(*_):
        raise AssertionError("the SPM ran")

    for module in model.spm.modules():
        module.register_forward_pre_hook(fail)
    written(model, pairs)
    with pytest.raises(AssertionError, match="the SPM ran"):
        model.trace(pairs)


def test_a_step_takes_no_gradient_where_none_is_wanted(make, system):
    model = make(system)
    with torch.inference_mode():
        _, logs = written(model, model.pairs(Batch.of(PAIRS)))
    assert not logs.requires_grad
