"""What the tests of several kernels share."""

from collections.abc import Iterator

import pytest
import torch


@pytest.fixture(scope="module")
def nothing_is_a_number_before_it_is_written() -> Iterator[None]:
    """On a CPU, where torch fills memory that nobody has written to so far."""
    if not torch.cuda.is_available():
        torch.use_deterministic_algorithms(True)
    yield
    torch.use_deterministic_algorithms(False)
