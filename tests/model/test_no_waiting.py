"""No training step asks for a value on its way, so that a GPU never waits for the host.

Fake tensors have shapes and no values: whatever needs one, such as `.item()` or an index by a mask,
fails with them.
"""

from typing import Any

import pytest
import torch
from torch._subclasses.fake_tensor import DataDependentOutputException, FakeTensorMode

from ledeline.data.dataset import Batch
from ledeline.model.addons import ADDONS
from ledeline.model.build import build, refusal
from ledeline.model.pairs import Pairs
from ledeline.model.system_config import ADDON_CONFIGS, SystemConfig
from ledeline.model.systems import SYSTEMS
from systems import small_config

BATCH = Batch.of([([4, 5, 6, 7, 5], [4, 6]), ([8, 9, 4, 4, 8], [9])])  # sources of one length
CASES = [
    pytest.param(name, addons, id="+".join([name, *addons]))
    for name in SYSTEMS
    for addons in [(), *((one,) for one in ADDONS)]
    if not any(refusal(SYSTEMS[name], one) for one in addons)
]


def losses(system: str, addons: tuple[str, ...]) -> torch.Tensor:
    """The losses of a step, and its gradients, without values."""
    config = SystemConfig(
        system=small_config(system, dropout=0.3),
        addons={name: ADDON_CONFIGS[name]() for name in addons},
    )
    model: Any = build(config, 11).train()
    pairs: Pairs = model.pairs(BATCH)
    with FakeTensorMode(allow_non_fake_inputs=True):
        total = model(pairs).total().sum()
        total.backward()
    return total  # type: ignore[no-any-return]


@pytest.mark.parametrize(("system", "addons"), CASES)
def test_a_step_needs_no_value(system: str, addons: tuple[str, ...]) -> None:
    assert losses(system, addons).shape == ()


def test_one_that_does_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    system = SYSTEMS["gru"]
    plain = system.losses

    def waiting(self: Any, pairs: Pairs) -> Any:
        found = plain(self, pairs)
        assert found.headline.sum().item() > 0
        return found

    monkeypatch.setattr(system, "losses", waiting)
    with pytest.raises(DataDependentOutputException):
        losses("gru", ())
