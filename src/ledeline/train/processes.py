"""The processes of a run: one, or as many as `torchrun` started, on one machine or several.

PyTorch does the work: DistributedDataParallel averages gradients, over NCCL on GPUs and over gloo
on CPUs. Beside it a small gloo group carries what the processes have to agree on.
"""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta

import torch
from torch import distributed, nn
from torch.nn.parallel import DistributedDataParallel

from ledeline.errors import ConfigError, TrainingError

TIMEOUT = timedelta(minutes=10)  # for the others to come to the same point


@dataclass(frozen=True)
class World:
    """A process among those of its run."""

    rank: int
    size: int
    device: torch.device
    control: distributed.ProcessGroup | None = None  # gloo; None for a single process

    @property
    def leads(self) -> bool:
        """Whether this process writes files and shows progress."""
        return self.rank == 0

    def sum(self, values: Sequence[float]) -> list[float]:
        """Add up numbers over all processes; a whole-number sum is exact."""
        if self.control is None:
            return list(values)
        tensor = torch.tensor(values, dtype=torch.float64)
        distributed.all_reduce(tensor, group=self.control)
        summed: list[float] = tensor.tolist()
        return summed

    def any(self, flag: bool) -> bool:
        """Whether it is so in any process."""
        return self.sum([flag])[0] > 0

    def agree(self, text: str, what: str) -> None:
        """Refuse to go on where a process has something else than the leading one."""
        if self.control is None:
            return
        box = [text]
        distributed.broadcast_object_list(box, src=0, group=self.control)
        if self.any(box[0] != text):
            raise TrainingError(f"the processes of this run differ in {what}; give all the same")

    def wrap(self, model: nn.Module) -> nn.Module:
        """The model with its gradients averaged over the processes."""
        if self.control is None:
            return model
        return DistributedDataParallel(model, broadcast_buffers=False)


@contextmanager
def joined(device: str) -> Iterator[World]:
    """Join the processes that `torchrun` started, or be the only one."""
    size = int(os.environ.get("WORLD_SIZE", "1"))
    if size == 1:
        yield World(0, 1, _device(device, 0))
        return
    chosen = _device(device, int(os.environ.get("LOCAL_RANK", "0")))
    if chosen.type == "cuda":
        torch.cuda.set_device(chosen)
    with _losses_named():
        backend = "nccl" if chosen.type == "cuda" else "gloo"
        distributed.init_process_group(backend, timeout=TIMEOUT)
        try:
            control = distributed.new_group(backend="gloo", timeout=TIMEOUT)
            yield World(distributed.get_rank(), size, chosen, control)
        finally:
            distributed.destroy_process_group()


@contextmanager
def _losses_named() -> Iterator[None]:
    """Say in a sentence that another process is gone, wherever the news arrives."""
    try:
        yield
    except RuntimeError as error:  # DistBackendError, DistNetworkError, gloo's own
        if not _is_connection(error):
            raise
        rank = os.environ.get("RANK", "?")
        raise TrainingError(
            f"process {rank} lost touch with another process of this run, which was stopped or "
            "cannot be reached; start all of them again with --resume"
        ) from error


def _is_connection(error: RuntimeError) -> bool:
    if isinstance(error, distributed.DistError):
        return True
    text = str(error).lower()
    return any(sign in text for sign in ("gloo", "connection", "nccl", "timed out", "store"))


def _device(wanted: str, local_rank: int) -> torch.device:
    there = torch.cuda.is_available()
    if wanted == "cpu" or (wanted == "auto" and not there):
        return torch.device("cpu")
    if not there:
        raise ConfigError("run.device = cuda: torch finds no GPU here; say cpu or auto")
    if local_rank >= torch.cuda.device_count():
        raise ConfigError(
            f"process {local_rank} of this machine has no GPU of its own: there are "
            f"{torch.cuda.device_count()}; start fewer with --nproc-per-node"
        )
    return torch.device("cuda", local_rank)
