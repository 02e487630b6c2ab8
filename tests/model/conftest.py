"""What the tests of the model share: one thread and the slow reference."""

from types import ModuleType

import pytest


@pytest.fixture(scope="module", autouse=True)
def _one_thread(one_thread: None) -> None:
    """All tests here."""


@pytest.fixture(scope="session")
def reference() -> ModuleType:
    """The slow reference."""
    import model_reference

    return model_reference
