"""Steps replayed as CUDA graphs, from data that lies on the device.

A step of one shape is always the same sequence of kernels, so it is captured once and then replayed
with a single call. What changes from step to step is written where the kernels read it: the order
of the epoch once an epoch, and the number of the batch. All shapes of a run are known before it
begins, since seed and epoch fix every batch. A batch with fewer pairs than others is filled up.
"""

import time
from collections import Counter
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, Final, Protocol

import numpy as np
import torch
from torch import Tensor

from ledeline.batches import Batches, Draw, Plan
from ledeline.config import TrainConfig
from ledeline.model.dropout import WHOLE
from ledeline.progress import Progress
from ledeline.train.processes import World
from ledeline.train.resident import NumSteps, Resident, Shape, shapes_of
from ledeline.train.step import Step

MULTIPLE: Final = 4  # of the headlines' widths: more makes fewer graphs, but longer steps
MOST_GRAPHS: Final = 1000  # some 30 ms each; the rarest shapes of many go without
STAGES: Final = ("warm up", "capture")

Work = Callable[[], None]


class Graphs(Protocol):
    """What captures work and gives what replays it."""

    def warm_up(self, work: Work) -> None:
        """Do the work once, so that all is loaded and compiled."""

    def rest(self) -> None:
        """Hand back the memory that warming up took."""

    def capture(self, work: Work) -> Work:
        """Capture the work without doing it."""


class CudaGraphs:
    """CUDA's graphs, all in the same memory: one is replayed after another, never two at once."""

    def __init__(self) -> None:
        self._pool = torch.cuda.graph_pool_handle()
        self._stream = torch.cuda.Stream()  # type: ignore[no-untyped-call]

    def warm_up(self, work: Work) -> None:
        """Do the work on the stream that captures."""
        self._stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(self._stream):
            work()

    def rest(self) -> None:
        """Hand back the memory that warming up took."""
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


def can_capture(config: TrainConfig, world: World) -> bool:
    """Whether the steps of a run can be captured."""
    alone = world.control is None
    return world.device.type == "cuda" and alone and config.run.fast and config.train.equal_lengths


class Captured:
    """Steps captured for every shape that the given epochs have."""

    def __init__(
        self,
        step: Step,
        batches: Batches,
        epochs: Iterable[int],
        graphs: Graphs,
        progress: Progress,
    ) -> None:
        began, model = time.perf_counter(), step.model
        self._step, self._num_steps = step, model.num_steps
        self._headline_lengths = batches.split.headlines.lengths()
        self._resident = Resident(batches.split, model.num_steps, model.device)
        put = partial(torch.zeros, device=model.device)
        self._rows = put(len(batches), batches.size, dtype=torch.int64)
        self._counts = put(len(batches), dtype=torch.float64)  # pairs of each batch
        self._number = put(1, dtype=torch.int64)  # of the batch, in its epoch
        self._places = torch.arange(batches.size, device=model.device)
        self._plan: Plan | None = None
        self._shapes: list[Shape] = []  # of the plan's batches
        model.dropout.share = WHOLE
        model.train()
        self._replays = self._prepared(batches, epochs, graphs, progress)
        self.figures: dict[str, Any] = {
            "graphs": len(self._replays),
            "seconds_to_capture": round(time.perf_counter() - began, 1),
        }
        if model.device.type == "cuda":
            self.figures["gpu_memory"] = torch.cuda.memory_reserved()

    def take(self, draw: Draw) -> None:
        """Learn from the pairs of a batch."""
        if draw.plan is not self._plan:
            self._load(draw.plan)
        self._number.fill_(draw.number)
        shape, rows = self._shapes[draw.number], draw.rows
        self._replays.get(shape, partial(self._learn, shape))()
        num_tokens = int(self._headline_lengths[rows].sum()) + len(rows)
        self._step.tally.count(num_tokens, len(rows))

    def _learn(self, shape: Shape) -> None:
        """The step that is captured: all it reads is on the device."""
        rows = self._rows[self._number].squeeze(0)  # (1, B) -> (B,)
        count = self._counts[self._number]  # (1,)
        present = (self._places < count).float()  # (B,)
        self._step(self._resident.pairs(rows, *shape), 1 / count.squeeze(0), present)

    def _load(self, plan: Plan) -> None:
        """Put the order of an epoch on the device; the last pair of a batch fills it up."""
        starts, stops = plan.bounds[:, :1], plan.bounds[:, 1:]  # (batches, 1)
        places = np.minimum(starts + np.arange(self._rows.shape[1]), stops - 1)
        self._rows.copy_(torch.from_numpy(plan.order[places]))
        self._counts.copy_(torch.from_numpy((stops - starts).squeeze(1)))
        self._plan, self._shapes = plan, shapes_of(plan, self._num_steps)

    def _prepared(
        self, batches: Batches, epochs: Iterable[int], graphs: Graphs, progress: Progress
    ) -> dict[Shape, Work]:
        """A graph for each shape, the largest first, so that the others fit in its memory."""
        often = shapes(map(batches.plan, epochs), self._num_steps).most_common(MOST_GRAPHS)
        ordered = sorted((shape for shape, _ in often), key=sum, reverse=True)
        work = {shape: partial(self._learn, shape) for shape in ordered}
        self._counts.fill_(1)  # of row 0, which all batches are of so far
        state = _state(self._step)
        before = [one.clone() for one in state]
        for number, one in enumerate(work.values(), start=1):
            graphs.warm_up(one)
            progress(STAGES[0], number, len(work))
        graphs.rest()
        for tensor, value in zip(state, before, strict=True):
            tensor.copy_(value)
        replays = {}
        for number, (shape, one) in enumerate(work.items(), start=1):
            replays[shape] = graphs.capture(one)
            progress(STAGES[1], number, len(work))
        return replays


def shapes(plans: Iterable[Plan], num_steps: NumSteps) -> Counter[Shape]:
    """Every shape that these epochs have, and how often."""
    return Counter(shape for plan in plans for shape in shapes_of(plan, num_steps))


def _state(step: Step) -> list[Tensor]:
    """What a step changes; Adam's part is there from now on."""
    optimizer = step.optimizer
    for parameter in step.model.parameters():
        if not optimizer.state[parameter]:
            optimizer.state[parameter] = {
                "step": torch.zeros((), device=parameter.device),
                "exp_avg": torch.zeros_like(parameter),
                "exp_avg_sq": torch.zeros_like(parameter),
            }
    moments = [one for state in optimizer.state.values() for one in state.values()]
    return [
        *(one.detach() for one in step.model.parameters()),
        *moments,
        step.norm,
        step.tally.sums,
    ]
