"""The processes of a run: one, or as many as `torchrun` started, on one machine or several.

PyTorch does the work: DistributedDataParallel averages gradients, over NCCL on GPUs and over gloo
on CPUs. Beside it a small gloo group carries what the processes have to agree on.
"""

import os
import signal
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta

import torch
from torch import distributed, nn
from torch.distributed.distributed_c10d import PrefixStore
from torch.distributed.rendezvous import rendezvous
from torch.nn.parallel import DistributedDataParallel

from ledeline.core.errors import ConfigError, TrainingError
from ledeline.core.signals import handled_by

JOIN_TIMEOUT = timedelta(minutes=2)  # for the others to start
TIMEOUT = timedelta(minutes=10)  # for the others to come to the same point


@dataclass(frozen=True)
class World:
    """A process among those of its run."""

    rank: int
    size: int
    device: torch.device
    control: distributed.ProcessGroup | None = None  # gloo; None for a single process

    @property
    def is_leader(self) -> bool:
        """Whether this process writes files and shows progress: number 0."""
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
        """Whether the flag is set in any process."""
        return self.sum([flag])[0] > 0

    def require_same(self, text: str, what: str) -> None:
        """Refuse to continue if a process has another text than the leading one."""
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
        return DistributedDataParallel(model)


def is_leading_process() -> bool:
    """Whether this process shows progress; known before it has joined the others."""
    return os.environ.get("WORLD_SIZE", "1") == "1" or os.environ.get("RANK") == "0"


@contextmanager
def join_processes(device: str) -> Iterator[World]:
    """Join the processes that `torchrun` started, or be the only one."""
    size = int(os.environ.get("WORLD_SIZE", "1"))
    if size == 1:
        yield World(0, 1, _device(device, 0))
        return
    _refuse_incomplete_address(size)
    chosen = _device(device, int(os.environ.get("LOCAL_RANK", "0")))
    if chosen.type == "cuda":
        torch.cuda.set_device(chosen)
    with _connection_errors(LOST):
        try:
            control = _join("nccl" if chosen.type == "cuda" else "gloo")
            yield World(distributed.get_rank(), size, chosen, control)
        finally:
            if distributed.is_initialized():
                distributed.destroy_process_group()


def _refuse_incomplete_address(size: int) -> None:
    missing = [name for name in ("RANK", "MASTER_ADDR", "MASTER_PORT") if name not in os.environ]
    if missing:
        raise ConfigError(
            f"WORLD_SIZE = {size} stands for several processes, but {', '.join(missing)} is not "
            "set; start them with torchrun, or unset WORLD_SIZE"
        )


def _join(backend: str) -> distributed.ProcessGroup:
    """Meet the other processes; gives the group for what they have to agree on.

    One that failed before never comes, so the time limit is shorter here than later. A signal ends
    the process meanwhile: nothing checks `Stop` while torch waits.
    """
    with handled_by(signal.SIG_DFL), _connection_errors(NOT_MET):
        shared, rank, size = next(rendezvous("env://", timeout=JOIN_TIMEOUT))
        attempt = os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")
        store = PrefixStore(
            attempt, shared
        )  # the shared one may hold addresses of an earlier attempt
        store.set(f"here/{rank}", "")
        store.wait([f"here/{one}" for one in range(size)], JOIN_TIMEOUT)
        store.set_timeout(TIMEOUT)
        distributed.init_process_group(
            backend, store=store, rank=rank, world_size=size, timeout=TIMEOUT
        )
        control: distributed.ProcessGroup = distributed.new_group(backend="gloo", timeout=TIMEOUT)
        return control


LOST = (
    "lost touch with another process of this run, which was stopped or cannot be reached; start "
    "all of them again with --resume"
)
NOT_MET = (
    "did not meet the other processes of this run; see in their output whether one failed, and in "
    "docs/scale.md how to name the network between machines"
)


@contextmanager
def _connection_errors(sentence: str) -> Iterator[None]:
    """Turn an error of the connection between processes into a sentence."""
    try:
        yield
    except RuntimeError as error:
        if not _is_connection(error):
            raise
        raise TrainingError(f"process {os.environ.get('RANK', '?')} {sentence}") from error


def _is_connection(error: RuntimeError) -> bool:
    """Torch has a class of such errors; those of gloo name the place they come from."""
    return isinstance(error, distributed.DistError) or "gloo" in str(error).lower()


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
