"""What the tests of the model share: small systems and the slow reference."""

from collections.abc import Callable
from types import ModuleType

import pytest
import torch

from ledeline.config import GateConfig, ModelConfig, SpmConfig, SystemConfig
from ledeline.model.systems.encdec import EncDec

SYSTEMS = {  # name -> gate, SPM
    "EncDec": (False, False),
    "EncDec+sGate": (True, False),
    "EncDec+SPM": (False, True),
    "EncDec+sGate+SPM": (True, True),
}


@pytest.fixture(scope="module", autouse=True)
def _one_thread(one_thread: None) -> None:
    """All tests here."""


@pytest.fixture(scope="session")
def reference() -> ModuleType:
    """The slow reference."""
    import model_reference

    return model_reference


@pytest.fixture(params=SYSTEMS)
def system(request: pytest.FixtureRequest) -> str:
    """Each of the four systems by its name."""
    return str(request.param)


@pytest.fixture(scope="session")
def make() -> Callable[..., EncDec]:
    """Makes a system in float64, for evaluation, every weight and bias random if `spread`."""

    def made(
        name: str,
        *,
        embedding: int = 3,
        hidden: int = 4,
        layers: int = 2,
        dropout: float = 0.0,
        c: float = 10.0,
        vocabulary: int = 11,
        seed: int = 0,
        spread: float = 0.6,
    ) -> EncDec:
        gate, spm = SYSTEMS[name]
        config = SystemConfig(
            model=ModelConfig(
                embedding_size=embedding, hidden_size=hidden, layers=layers, dropout=dropout
            ),
            gate=GateConfig(enabled=gate),
            spm=SpmConfig(enabled=spm, c=c),
        )
        assert config.name == name
        model = EncDec(config, vocabulary, seed).double().eval()
        dice = torch.Generator().manual_seed(seed)
        for parameter in model.parameters() if spread else ():
            torch.nn.init.normal_(parameter, std=spread, generator=dice)
        return model

    return made
