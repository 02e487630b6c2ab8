"""A sentence for a run that needs more memory than there is."""

from collections.abc import Iterator
from contextlib import contextmanager

from ledeline.core.errors import TrainingError
from ledeline.model.build import is_out_of_memory


@contextmanager
def explain_out_of_memory(batch_size: int) -> Iterator[None]:
    """Turn an out-of-memory error into one sentence that says what needs less."""
    try:
        yield
    except (RuntimeError, MemoryError) as error:
        if not is_out_of_memory(error):
            raise
        raise TrainingError(
            f"there is not enough memory for batches of {batch_size} pairs; start another run with "
            f"smaller ones, such as --train.batch_size={max(1, batch_size // 2)}, or with shorter "
            "ledes (filter.max_lede_subwords of ledeline prepare)"
        ) from error
