"""Steps replayed as CUDA graphs, from data on the device.

A step of one shape is always the same sequence of kernels, so it is captured once and then replayed
with a single call. What changes from step to step is written where the kernels read it: the order
of the epoch once an epoch, and the number of the batch. All shapes of a run are known before it
begins, since seed and epoch fix every batch. A batch with fewer pairs than others of its length is
filled up.
"""

import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from typing import Any, Final, Protocol

import numpy as np
import torch
from torch import Tensor

from ledeline.core.progress import Progress
from ledeline.data.batches import Batches, EpochPlan, PlannedBatch
from ledeline.model.layers.dropout import WHOLE_BATCH
from ledeline.model.system import System
from ledeline.train.device_data import DeviceSplit, NumSteps, Shape, shapes_of, size_of
from ledeline.train.processes import World
from ledeline.train.step import TrainStep
from ledeline.train.train_config import TrainConfig

MULTIPLE: Final = 8  # of the headlines' widths: more makes fewer graphs, but longer steps
MAX_GRAPHS: Final = 1000  # they take time and memory; the rarest shapes beyond are not captured
STAGES: Final = ("warm up", "capture")

Work = Callable[[], None]


class Graphs(Protocol):
    """What captures work and returns a function that replays it."""

    def warm_up(self, work: Work) -> None:
        """Do the work once, so that all is loaded and compiled."""

    def release_memory(self) -> None:
        """Wait until all is done, and free the memory that nothing uses any more."""

    def capture(self, work: Work) -> Work:
        """Capture the work without doing it."""


class CudaGraphs:
    """CUDA graphs that share memory, since never two are replayed at once."""

    def __init__(self) -> None:
        self._pool = torch.cuda.graph_pool_handle()
        self._stream = torch.cuda.Stream()  # type: ignore[no-untyped-call]

    def warm_up(self, work: Work) -> None:
        """Do the work on the stream that captures."""
        self._stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(self._stream):
            work()

    def release_memory(self) -> None:
        """Wait until all is done, and free the memory that nothing uses any more."""
        torch.cuda.synchronize()
        torch.cuda.empty_cache()

    def capture(self, work: Work) -> Work:
        """Capture the work; `torch.cuda.graph` would empty the caches each time."""
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.stream(self._stream):
            graph.capture_begin(pool=self._pool)
            try:
                work()
            finally:
                graph.capture_end()
        return graph.replay


def can_capture(config: TrainConfig, model: System, world: World) -> bool:
    """Whether the steps of a run are captured."""
    return wants_capture(config, world) and not capture_obstacle(config, model)


def wants_capture(config: TrainConfig, world: World) -> bool:
    """Whether device, processes and batches are such that steps would be captured."""
    is_alone = world.control is None
    on_gpu = world.device.type == "cuda"
    of_pairs = config.train.equal_lengths and config.train.batch_unit != "words"
    return on_gpu and is_alone and config.run.fast and of_pairs


def capture_obstacle(config: TrainConfig, model: System) -> str:
    """What cannot be captured: the system, an add-on, the optimizer, or nothing."""
    if not model.capturable:
        return f"the system {config.system.name}"
    for name, addon in getattr(model, "addons", {}).items():
        if not addon.capturable:
            return f"the add-on {name}"
    return "" if config.optimizer.capturable else f"the optimizer {config.optimizer.name}"


class CapturedSteps:
    """Steps captured for every shape that the given epochs have.

    The split is read, and its shapes are counted, in the background until `prepare` needs them.
    """

    _data: DeviceSplit

    def __init__(
        self, step: TrainStep, batches: Batches, epochs: Iterable[int], graphs: Graphs
    ) -> None:
        model = step.model
        self._step, self._graphs, self._num_steps = step, graphs, model.num_steps
        self._batches = batches
        reader = ThreadPoolExecutor(1)
        self._loading = reader.submit(_read, batches, epochs, model.num_steps, model.device)
        reader.shutdown(wait=False)
        put = partial(torch.zeros, device=model.device)
        self._rows = put(len(batches), batches.max_height, dtype=torch.int64)
        self._counts = put(len(batches), dtype=torch.float64)  # pairs of each batch
        self._divisors = put(len(batches), dtype=torch.float64)  # of the loss of each batch
        self._number = put(1, dtype=torch.int64)  # of the batch, in its epoch
        self._places = torch.arange(batches.max_height, device=model.device)
        self._plan: EpochPlan | None = None
        self._shapes: list[Shape] = []  # of the plan's batches
        self._replays: dict[Shape, Work] = {}
        self.setup_info: dict[str, Any] = {}

    def prepare(self, progress: Progress) -> None:
        """Capture a graph of each shape that is worth it.

        The largest come first, so that others fit in its memory.
        """
        with self._timed("read"):
            self._data, often = self._loading.result()
        model = self._step.model
        model.share_batches(WHOLE_BATCH)
        model.train()
        ordered = sorted(_worth_capturing(often, model), key=size_of, reverse=True)
        work = {shape: partial(self._learn, shape) for shape in ordered}
        with self._timed("warm_up"):
            self._warm_up(work.values(), progress)
        with self._timed("capture"):
            for number, (shape, one) in enumerate(work.items(), start=1):
                self._replays[shape] = self._graphs.capture(one)
                progress(STAGES[1], number, len(work))
        self.setup_info["graphs"] = len(work)
        if model.device.type == "cuda":
            self.setup_info["gpu_memory"] = torch.cuda.memory_reserved()

    def run(self, draw: PlannedBatch) -> None:
        """Learn from the pairs of a batch."""
        if draw.plan is not self._plan:
            self._load(draw.plan)
        self._number.fill_(draw.number)
        shape, rows = self._shapes[draw.number], draw.rows
        self._replays.get(shape, partial(self._learn, shape))()
        self._step.accumulator.count(self._batches.num_tokens(rows), len(rows))

    def _learn(self, shape: Shape) -> None:
        """The step that is captured: all it reads is on the device."""
        height, *sides = shape
        rows = self._rows[self._number].squeeze(0)[:height]  # (1, batch size) -> (B,)
        count = self._counts[self._number]  # (1,)
        pair_mask = (self._places[:height] < count).float()  # (B,)
        divisor = self._divisors[self._number].squeeze(0)
        self._step(self._data.pairs(rows, *sides), 1 / divisor, pair_mask)

    def _load(self, plan: EpochPlan) -> None:
        """Put the order of an epoch on the device; the last pair of a batch fills it up."""
        starts, stops = plan.bounds[:, :1], plan.bounds[:, 1:]  # (batches, 1)
        places = np.minimum(starts + np.arange(self._rows.shape[1]), stops - 1)
        self._rows.copy_(torch.from_numpy(plan.order[places]))
        self._counts.copy_(torch.from_numpy((stops - starts).squeeze(1)))
        batch_rows = (plan.order[start:stop] for start, stop in plan.bounds.tolist())
        divisors = [self._step.divisor(self._batches, one) for one in batch_rows]
        self._divisors.copy_(torch.tensor(divisors))
        self._plan, self._shapes = plan, shapes_of(plan, self._num_steps)

    def _warm_up(self, work: Collection[Work], progress: Progress) -> None:
        """Take a step of every shape, and then undo what was learned.

        A matrix product may have a kernel of its own for each shape. Kernels are loaded when first
        used, which must not happen during a capture.
        """
        self._graphs.release_memory()  # of what came before, such as a validation
        self._counts.fill_(1)  # row 0, which all batches consist of so far
        self._divisors.fill_(1)
        state = _state(self._step)
        before = [one.clone() for one in state]
        for number, one in enumerate(work, start=1):
            self._graphs.warm_up(one)
            progress(STAGES[0], number, len(work))
        self._graphs.release_memory()
        for tensor, value in zip(state, before, strict=True):
            tensor.copy_(value)

    @contextmanager
    def _timed(self, part: str) -> Iterator[None]:
        """Note how long a part of the preparation took."""
        began = time.perf_counter()
        yield
        self.setup_info[f"seconds_to_{part}"] = round(time.perf_counter() - began, 2)


def _read(
    batches: Batches, epochs: Iterable[int], num_steps: NumSteps, device: torch.device
) -> tuple[DeviceSplit, Counter[Shape]]:
    """The split on the device, and the shapes that its batches have."""
    return DeviceSplit(batches.split, num_steps, device), shapes(
        map(batches.plan, epochs), num_steps
    )


def shapes(plans: Iterable[EpochPlan], num_steps: NumSteps) -> Counter[Shape]:
    """Every shape that these epochs have, and how often."""
    return Counter(shape for plan in plans for shape in shapes_of(plan, num_steps))


def _worth_capturing(often: Counter[Shape], model: System) -> list[Shape]:
    """The commonest shapes, but for those whose kernels take longer than to launch them."""
    most, limit = often.most_common(MAX_GRAPHS), model.max_captured_tokens
    return [shape for shape, _ in most if limit is None or size_of(shape) <= limit]


def _state(step: TrainStep) -> list[Tensor]:
    """Every tensor that a step changes."""
    of_optimizer = [one for state in step.optimizer.state.values() for one in state.values()]
    return [
        *(one.detach() for one in step.model.parameters()),
        *step.model.buffers(),
        *of_optimizer,
        step.norm,
        step.accumulator.sums,
    ]
