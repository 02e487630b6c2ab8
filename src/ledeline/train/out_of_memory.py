"""What is said where memory does not suffice."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import torch

from ledeline.core.errors import TrainingError

_OF_CPU: Final = "can't allocate memory"  # a RuntimeError like any other, but for its words


@contextmanager
def explain_out_of_memory(batch_size: int) -> Iterator[None]:
    """Turn an end of memory into one sentence that says what needs less."""
    try:
        yield
    except (RuntimeError, MemoryError) as error:
        short = isinstance(error, MemoryError | torch.OutOfMemoryError) or _OF_CPU in str(error)
        if not short:
            raise
        raise TrainingError(
            f"the memory does not suffice for batches of {batch_size} pairs; begin another run "
            f"with less, such as --train.batch_size={max(1, batch_size // 2)}, or with shorter "
            "ledes (filter.max_lede_subwords of ledeline prepare)"
        ) from error
