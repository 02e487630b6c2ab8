"""Captured steps are plain steps: on a CPU with graphs that only call, on a GPU with real ones."""

import shutil
from collections.abc import Callable, Iterable
from dataclasses import replace
from itertools import islice
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from ledeline.core.errors import DatasetError
from ledeline.core.progress import no_progress
from ledeline.data.batches import Batches, PlannedBatch
from ledeline.data.dataset import Dataset, DatasetWriter, EncodedChunk
from ledeline.model.build import build
from ledeline.model.gpu.dispatch import kernel_mode, without_tf32
from ledeline.model.layers.dropout import seed
from ledeline.model.pairs import Pairs
from ledeline.model.systems.encdec import EncDec
from ledeline.text.profiles import NATURAL
from ledeline.text.subwords import Subwords
from ledeline.text.tokenizer import Tokenizer
from ledeline.train import cuda_graphs, loop
from ledeline.train.callbacks import NullCallback
from ledeline.train.cuda_graphs import MULTIPLE, CapturedSteps, CudaGraphs, can_capture
from ledeline.train.device_data import DeviceSplit, size_of
from ledeline.train.loop import train
from ledeline.train.optimizers import (
    AdadeltaConfig,
    AdagradConfig,
    AdamConfig,
    OptimizerConfig,
    SgdConfig,
    build_optimizer,
    optimizer_state,
    set_rate,
)
from ledeline.train.processes import World
from ledeline.train.step import EagerSteps, TrainStep
from ledeline.train.train_config import TrainConfig
from systems import addons, small_config

OPTIMIZERS: list[OptimizerConfig] = [
    AdamConfig(),
    AdagradConfig(initial_sum=0.1),
    AdadeltaConfig(),
    SgdConfig(),
    SgdConfig(momentum=0.9, nesterov=True),
]
SYSTEMS = [(False, False), (True, False), (False, True), (True, True)]
CPU = torch.device("cpu")
needs_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")


class Calls:
    """Graphs that only call what they should have captured, and count."""

    def __init__(self) -> None:
        self.num_warmed = self.num_captured = self.num_replayed = 0

    def warm_up(self, work: Callable[[], None]) -> None:
        self.num_warmed += 1
        work()

    def release_memory(self) -> None: ...

    def capture(self, work: Callable[[], None]) -> Callable[[], None]:
        self.num_captured += 1

        def replay() -> None:
            self.num_replayed += 1
            work()

        return replay


def changed(config: TrainConfig, **sections: dict[str, Any]) -> TrainConfig:
    parts = {name: replace(getattr(config, name), **keys) for name, keys in sections.items()}
    return replace(config, **parts)


def system(config: TrainConfig, gate: bool, spm: bool) -> TrainConfig:
    return replace(config, addons=addons(sgate=gate, spm=spm))


def made(
    config: TrainConfig, device: torch.device = CPU, kind: torch.dtype = torch.float32
) -> TrainStep:
    dataset = Dataset(config.data.dataset)
    size = dataset.tokenizer.vocabulary_size
    model = build(config.model, size, config.train.seed, config.init).to(device, kind)
    optimizer = build_optimizer(config.optimizer, model.parameters(), device)
    step = TrainStep(model, model, optimizer, config)
    set_rate(step.optimizer, config.optimizer.learning_rate)
    return step


def drawn(config: TrainConfig) -> Batches:
    return Batches(
        Dataset(config.data.dataset)["train"],
        size=config.train.batch_size,
        seed=config.train.seed,
        unit=config.train.batch_unit,
        multiple=MULTIPLE,
    )


def captured_steps(
    step: TrainStep, batches: Batches, epochs: list[int], graphs: Any
) -> CapturedSteps:
    steps = CapturedSteps(step, batches, epochs, graphs)
    steps.prepare(no_progress)
    return steps


def weights(step: TrainStep) -> dict[str, torch.Tensor]:
    return {name: one.detach().clone() for name, one in step.model.named_parameters()}


# --- pairs made on the device ---------------------------------------------------------------------


@pytest.mark.parametrize(("gate", "spm"), SYSTEMS)
@pytest.mark.parametrize("batch_size", [1, 3, 24])
def test_pairs_on_the_device_are_those_of_the_model(
    tiny: TrainConfig, gate: bool, spm: bool, batch_size: int
) -> None:
    config = changed(system(tiny, gate, spm), train={"batch_size": batch_size})
    model, batches = made(config).model, drawn(config)
    on_device = DeviceSplit(batches.split, model.num_steps, CPU)
    plan = batches.plan(0)
    masked = 0
    for number in range(len(batches)):
        draw = PlannedBatch(plan, number)
        expected = model.pairs(batches.read(draw))
        length, width = expected.sources.shape[1], expected.targets.shape[1]
        pairs = on_device.pairs(torch.from_numpy(draw.rows), length, width)
        for name in ("sources", "targets", "headline_mask"):
            ours, theirs = getattr(pairs, name), getattr(expected, name)
            assert ours.dtype == theirs.dtype
            assert torch.equal(ours, theirs), name
        assert pairs.source_mask is pairs.source_lengths is None
        full = torch.ones_like(expected.headline_mask)
        ours, theirs = (full if p.target_mask is None else p.target_mask for p in (pairs, expected))
        assert torch.equal(ours, theirs)
        masked += pairs.target_mask is not None
        if spm:
            assert pairs.target_mask is None
    assert masked > 0 or spm


def test_the_last_pair_of_a_large_vocabulary_can_be_read_in_any_width(tmp_path: Path) -> None:
    """Ids beyond what 16 bits with a sign hold, and nothing behind the last one."""
    ids = np.array([40_000, 65_535, 5, 50_000, 7], np.int64)
    words = {f"w{number}": 1 for number in range(3)}
    writer = DatasetWriter(tmp_path, Tokenizer(NATURAL, Subwords.learn(words, 0)))
    chunk = EncodedChunk(ids, np.array([3, 2]), ids[:3], np.array([2, 1]))
    writer.write_split("train", [chunk])
    writer.finish()
    split = Dataset(tmp_path)["train"]
    on_device = DeviceSplit(split, lambda sources, headlines: headlines + 1, CPU)
    pairs = on_device.pairs(torch.tensor([1, 1]), 2, 3)
    assert pairs.sources.tolist() == [[50_000, 7]] * 2
    assert pairs.targets.tolist() == [[5, 3, 0]] * 2
    assert pairs.target_mask is not None
    assert pairs.target_mask.tolist() == [[True, True, False]] * 2
    assert on_device.pairs(torch.tensor([0]), 3, 3).target_mask is None  # there is no other


# --- all shapes are known -------------------------------------------------------------------------


@given(st.integers(0, 2**32), st.integers(1, 40), st.integers(0, 5), st.booleans())
def test_no_batch_has_a_shape_that_was_not_prepared(
    newsroom: Path, number: int, size: int, begin: int, spm: bool
) -> None:
    batches = Batches(Dataset(newsroom)["train"], size=size, seed=number, multiple=MULTIPLE)
    with_spm = lambda i, j: np.maximum(i, j + 1)  # noqa: E731
    num_steps = with_spm if spm else lambda _, j: j + 1
    epochs = range(begin, begin + 3)
    known = cuda_graphs.shapes(map(batches.plan, epochs), num_steps)
    often = np.bincount(batches.split.sources.lengths())
    seen = set()
    for epoch in epochs:
        for batch in batches.epoch(epoch):
            length, width = batch.sources.shape[1], batch.headlines.shape[1]
            steps = int(num_steps(np.array(length), np.array(width)))
            seen.add((min(size, -(-int(often[length]) // 32) * 32), length, steps))
            assert steps <= length
            assert steps == length or steps % MULTIPLE == 0
            assert steps < int(batch.headline_lengths.max()) + 1 + MULTIPLE or spm
    assert seen == set(known)
    assert sum(known.values()) == 3 * len(batches)


class Sides:
    """As many pairs of each source length as are wanted, with headlines of a word."""

    def __init__(self, often: dict[int, int]) -> None:
        self._lengths = np.repeat([*often], [*often.values()])
        np.random.default_rng(0).shuffle(self._lengths)
        self.sources = SimpleNamespace(lengths=lambda: self._lengths)
        self.headlines = SimpleNamespace(lengths=lambda: np.ones_like(self._lengths))

    def __len__(self) -> int:
        return len(self._lengths)


@given(st.dictionaries(st.integers(1, 9), st.integers(1, 300), min_size=1), st.integers(1, 300))
def test_a_length_has_one_height_which_holds_every_batch_of_it(
    often: dict[int, int], size: int
) -> None:
    split: Any = Sides(often)
    plan = Batches(split, size=size, seed=1).plan(0)
    heights: dict[int, set[int]] = {length: set() for length in often}
    sides = plan.source_widths.tolist(), plan.heights.tolist(), plan.bounds.tolist()
    for length, height, (start, stop) in zip(*sides, strict=True):
        assert stop - start <= height <= size
        heights[length].add(height)
    for length, count in often.items():
        (height,) = heights[length]
        if count >= size or count > size - size % 32:
            assert height == size
        else:
            assert height % 32 == 0
            assert count <= height < count + 32


# --- the same steps, on a CPU ---------------------------------------------------------------------


def both(
    config: TrainConfig, kind: torch.dtype = torch.float32, num: int = 3
) -> tuple[TrainStep, TrainStep, list[int]]:
    """As many steps by each, from the same weights; the smallest batch, the largest, and so on."""
    plain, fast, batches = made(config, kind=kind), made(config, kind=kind), drawn(config)
    one = EagerSteps(plain, batches, World(0, 1, CPU))
    other = captured_steps(fast, batches, [0], Calls())
    ordered = sorted(
        islice(batches.planned_from(), len(batches)), key=lambda pair: len(pair[0].rows)
    )
    draws = [one for pair in zip(ordered, ordered[::-1], strict=True) for one in pair]
    for number, (draw, _) in enumerate(draws[:num]):
        for steps in (one, other):
            seed(1, number)
            steps.run(draw)
    return plain, fast, [len(draw.rows) for draw, _ in draws[:num]]


@pytest.fixture
def heights(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The rows of each batch that a step is given."""
    seen: list[int] = []
    real = TrainStep.__call__

    def call(self: TrainStep, pairs: Pairs, *more: Any) -> None:
        seen.append(len(pairs.sources))
        real(self, pairs, *more)

    monkeypatch.setattr(TrainStep, "__call__", call)
    return seen


@pytest.mark.parametrize(("gate", "spm"), SYSTEMS)
@pytest.mark.parametrize(
    ("kind", "close", "batch_size", "full_rows", "filled_up"),
    [
        (torch.float32, 1e-6, 4, 32, {4}),
        (torch.float64, 1e-13, 4, 32, {4}),
        (torch.float64, 1e-13, 40, 32, {32}),
        (torch.float64, 1e-13, 4, 2, {2, 4}),
    ],
    ids=["to a full batch, float32", "to a full batch", "to 32", "to 2"],
)
def test_a_batch_that_is_filled_up_teaches_the_same(
    tiny: TrainConfig,
    gate: bool,
    spm: bool,
    kind: torch.dtype,
    close: float,
    batch_size: int,
    full_rows: int,
    filled_up: set[int],
    heights: list[int],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("ledeline.data.batches.ROW_MULTIPLE", full_rows)
    config = changed(
        system(tiny, gate, spm), system={"dropout": 0.0}, train={"batch_size": batch_size}
    )
    plain, fast, sizes = both(config, kind)
    num_warmed = len(heights) - 2 * len(sizes)
    assert {*heights[:num_warmed]} == filled_up
    taken = [*zip(heights[num_warmed::2], heights[num_warmed + 1 :: 2], strict=True)]
    assert [plainly for plainly, _ in taken] == sizes
    assert all(number <= height in filled_up for number, height in taken)
    assert any(number < height for number, height in taken)
    assert torch.allclose(fast.norm, plain.norm, rtol=10 * close)
    world = World(0, 1, CPU)
    ours, theirs = fast.accumulator.means(world), plain.accumulator.means(world)
    assert ours.num_pairs == theirs.num_pairs == sum(sizes)
    assert ours.metrics == pytest.approx(theirs.metrics, rel=10 * close)
    for (name, one), (_, other) in zip(weights(fast).items(), weights(plain).items(), strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=close, msg=name)
    for one, other in zip(
        fast.optimizer.state.values(), plain.optimizer.state.values(), strict=True
    ):
        assert float(one["step"]) == float(other["step"]) == 3
        torch.testing.assert_close(one["exp_avg"], other["exp_avg"], rtol=0, atol=close)


@pytest.mark.parametrize("unit", ["tokens", "nothing"])
def test_the_loss_is_divided_alike(tiny: TrainConfig, unit: Any) -> None:
    config = changed(tiny, system={"dropout": 0.0}, train={"divide_loss_by": unit})
    plain, fast, _ = both(config, torch.float64)
    torch.testing.assert_close(fast.norm, plain.norm)


@pytest.mark.parametrize("batch_size", [4, 40])
def test_gradients_of_a_filled_up_batch(
    tiny: TrainConfig, batch_size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[dict[str, torch.Tensor]] = []

    def no_step(self: torch.optim.Adam) -> None:
        (group,) = self.param_groups
        seen.append({str(n): p.grad.clone() for n, p in enumerate(group["params"])})

    config = changed(
        tiny, system={"dropout": 0.0}, train={"clip_norm": 1e9, "batch_size": batch_size}
    )
    monkeypatch.setattr(torch.optim.Adam, "step", no_step)
    both(config, torch.float64, num=1)
    *_, one, other = seen  # warming up comes before them
    assert len(seen) > 2
    for name in one:
        torch.testing.assert_close(one[name], other[name], rtol=1e-11, atol=1e-14)


@pytest.mark.parametrize("optimizer", OPTIMIZERS, ids=repr)
def test_every_optimizer_takes_the_same_steps(
    tiny: TrainConfig, optimizer: OptimizerConfig
) -> None:
    config = changed(replace(tiny, optimizer=optimizer), system={"dropout": 0.0})
    plain, fast, _ = both(config, torch.float64)
    start = weights(made(config, kind=torch.float64))
    for (name, one), other in zip(weights(fast).items(), weights(plain).values(), strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=1e-12, msg=name)
        assert not torch.equal(one, start[name])
    ours, theirs = (optimizer_state(optimizer, one.model, one.optimizer) for one in (fast, plain))
    for name, value in ours.items():
        torch.testing.assert_close(value, theirs[name], rtol=0, atol=1e-12, msg=name)


def test_full_batches_have_the_same_masks(tiny: TrainConfig) -> None:
    config = changed(tiny, train={"batch_size": 1})
    plain, fast, _ = both(config, num=5)
    for one, other in zip(weights(fast).values(), weights(plain).values(), strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=1e-6)


@pytest.mark.parametrize("optimizer", OPTIMIZERS, ids=repr)
def test_being_prepared_changes_nothing(tiny: TrainConfig, optimizer: OptimizerConfig) -> None:
    config = replace(tiny, optimizer=optimizer)
    step, batches, graphs = made(config), drawn(config), Calls()
    before, state = weights(step), optimizer_state(optimizer, step.model, step.optimizer)
    remembered = {name: one.clone() for name, one in state.items()}
    steps = captured_steps(step, batches, [0, 1], graphs)
    assert graphs.num_warmed == graphs.num_captured == steps.setup_info["graphs"] > 3
    for name, value in weights(step).items():
        assert torch.equal(value, before[name])
    for name, one in optimizer_state(optimizer, step.model, step.optimizer).items():
        assert one is state[name]
        assert torch.equal(one, remembered[name])
    assert not step.accumulator.sums.any()
    assert not step.norm


def test_a_shape_that_was_not_prepared_is_learned_all_the_same(tiny: TrainConfig) -> None:
    config = changed(tiny, system={"dropout": 0.0})
    known, unknown, batches, graphs = made(config), made(config), drawn(config), Calls()
    one = captured_steps(known, batches, [0], Calls())
    other = captured_steps(unknown, batches, [], graphs)
    for draw, _ in islice(batches.planned_from(), 3):
        one.run(draw)
        other.run(draw)
    assert graphs.num_captured == 0
    assert all(map(torch.equal, weights(known).values(), weights(unknown).values()))


def test_of_too_many_shapes_the_rarest_go_without(
    tiny: TrainConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cuda_graphs, "MAX_GRAPHS", 2)
    batches, graphs = drawn(tiny), Calls()
    steps = captured_steps(made(tiny), batches, [0], graphs)
    for draw, _ in islice(batches.planned_from(), len(batches)):
        steps.run(draw)
    assert graphs.num_captured == 2
    assert 2 <= graphs.num_replayed < len(batches)


# --- whole runs, on a CPU -------------------------------------------------------------------------


def transformer(config: TrainConfig, *, spm: bool = False) -> TrainConfig:
    """The same with a Transformer, and batches of so many source tokens."""
    train = replace(config.train, batch_unit="source_tokens", batch_size=120)
    own = small_config("transformer")
    return replace(config, system=own, addons=addons(sgate=spm, spm=spm), train=train)


@pytest.mark.parametrize("spm", [False, True])
def test_a_transformer_learns_the_same_from_batches_of_tokens(tiny: TrainConfig, spm: bool) -> None:
    plain, fast, sizes = both(transformer(tiny, spm=spm), torch.float64, num=4)
    assert len({*sizes}) > 1
    for name, one in weights(plain).items():
        torch.testing.assert_close(weights(fast)[name], one, rtol=1e-9, atol=1e-11)


def test_large_steps_are_not_captured(tiny: TrainConfig, monkeypatch: pytest.MonkeyPatch) -> None:
    config = transformer(tiny)
    batches = drawn(config)
    step, graphs = made(config), Calls()
    known = cuda_graphs.shapes([batches.plan(0)], step.model.num_steps)
    sizes = sorted(map(size_of, known))
    limit = sizes[len(sizes) // 2]
    monkeypatch.setattr(type(step.model), "max_captured_tokens", limit)
    steps = captured_steps(step, batches, [0], graphs)
    small = {shape for shape in known if size_of(shape) <= limit}
    assert 0 < graphs.num_captured == graphs.num_warmed == len(small) < len(known)
    for draw, _ in islice(batches.planned_from(), len(batches)):
        steps.run(draw)
    assert graphs.num_replayed == sum(known[shape] for shape in small)


@pytest.fixture
def fast_on_cpu(monkeypatch: pytest.MonkeyPatch) -> list[Calls]:
    """Runs with `run.fast` take the captured way on a CPU, with graphs that only call."""
    made: list[Calls] = []

    def graphs() -> Calls:
        made.append(Calls())
        return made[-1]

    monkeypatch.setattr("ledeline.train.loop.CudaGraphs", graphs)
    monkeypatch.setattr("ledeline.train.loop.can_capture", lambda config, *_: config.run.fast)
    return made


def test_a_run_ends_with_the_weights_of_a_plain_one(
    tmp_path: Path, tiny: TrainConfig, fast_on_cpu: list[Calls], runs: Any
) -> None:
    config = changed(tiny, system={"dropout": 0.0})
    train(config, tmp_path / "fast")
    train(changed(config, run={"fast": False}), tmp_path / "plain")
    (graphs,) = fast_on_cpu
    start = runs.lines(tmp_path / "fast", "start")[0]
    assert start["graphs"] == graphs.num_captured
    parts = {"seconds_to_read", "seconds_to_warm_up", "seconds_to_capture"}
    assert {name for name in start if name.startswith("seconds_")} == parts
    assert start["seconds_to_warm_up"] > 0
    assert "graphs" not in runs.lines(tmp_path / "plain", "start")[0]
    steps = runs.lines(tmp_path / "fast", "stop")[0]["step"]
    assert graphs.num_replayed == steps  # none was taken in another way
    runs.assert_losses_alike(runs.metrics(tmp_path / "fast"), runs.metrics(tmp_path / "plain"))
    ours, theirs = (runs.weights(tmp_path / name) for name in ("fast", "plain"))
    for name, value in ours.items():
        torch.testing.assert_close(value, theirs[name], rtol=0, atol=1e-5)


def test_stopped_and_resumed_is_as_one(
    tmp_path: Path, tiny: TrainConfig, fast_on_cpu: list[Calls], runs: Any
) -> None:
    train(tiny, tmp_path / "whole")
    for _ in range(3):
        assert train(tiny, tmp_path / "parts", resume=True, max_minutes=0).stopped
    train(changed(tiny, train={"epochs": 1}), tmp_path / "parts", resume=True)
    assert train(tiny, tmp_path / "parts", resume=True, max_minutes=0).stopped
    train(tiny, tmp_path / "parts", resume=True)
    assert runs.same(runs.weights(tmp_path / "whole"), runs.weights(tmp_path / "parts"))


def test_a_run_may_change_between_fast_and_plain(
    tmp_path: Path, tiny: TrainConfig, fast_on_cpu: list[Calls], runs: Any
) -> None:
    config = changed(tiny, system={"dropout": 0.0})
    train(config, tmp_path / "whole")
    for fast in (True, False, True, False):
        other = changed(config, run={"fast": fast})
        assert train(other, tmp_path / "parts", resume=True, max_minutes=0).stopped
    train(config, tmp_path / "parts", resume=True)
    ours, theirs = (runs.weights(tmp_path / name) for name in ("whole", "parts"))
    for name, value in ours.items():
        torch.testing.assert_close(value, theirs[name], rtol=0, atol=1e-5)


def test_what_is_wrong_with_the_split_is_told_though_it_is_read_in_the_background(
    tmp_path: Path, tiny: TrainConfig, fast_on_cpu: list[Calls]
) -> None:
    copy = shutil.copytree(tiny.data.dataset, tmp_path / "dataset")
    path = copy / "train.source.ids.bin"
    path.write_bytes(bytes([path.read_bytes()[0] ^ 1]) + path.read_bytes()[1:])
    with pytest.raises(DatasetError, match=r"train\.source\.ids\.bin"):
        train(changed(tiny, data={"dataset": copy}), tmp_path / "run")
    assert fast_on_cpu[0].num_warmed == 0


class TestCanCapture:
    GPU = World(0, 1, torch.device("cuda"))

    def test_by_device_processes_and_batches(self, tiny: TrainConfig) -> None:
        model, several = made(tiny).model, cast(Any, object())
        assert can_capture(tiny, model, self.GPU)
        assert not can_capture(tiny, model, World(0, 1, CPU))
        assert not can_capture(changed(tiny, run={"fast": False}), model, self.GPU)
        assert not can_capture(changed(tiny, train={"equal_lengths": False}), model, self.GPU)
        assert not can_capture(tiny, model, World(0, 2, torch.device("cuda"), several))

    def test_by_system_and_optimizer(
        self, tiny: TrainConfig, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        model = made(tiny).model
        assert all(can_capture(replace(tiny, optimizer=one), model, self.GPU) for one in OPTIMIZERS)
        monkeypatch.setattr(SgdConfig, "capturable", False)
        assert not can_capture(replace(tiny, optimizer=SgdConfig()), model, self.GPU)
        monkeypatch.setattr(type(model), "capturable", False)
        assert not can_capture(tiny, model, self.GPU)

    @pytest.mark.parametrize(
        ("kind", "sentence"),
        [
            (EncDec, "the system encdec cannot be captured in CUDA graphs, so steps take longer"),
            (AdamConfig, "the optimizer adam cannot be captured in CUDA graphs, so steps take lo"),
        ],
    )
    def test_what_cannot_is_said_at_the_start(
        self,
        tmp_path: Path,
        tiny: TrainConfig,
        kind: type,
        sentence: str,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        said: list[str] = []
        callback = NullCallback()
        monkeypatch.setattr(callback, "on_message", said.append)
        for place in (cuda_graphs, loop):
            monkeypatch.setattr(place, "wants_capture", lambda *_: True)
        monkeypatch.setattr(kind, "capturable", False)
        result = train(tiny, tmp_path / "run", max_minutes=0, callback=callback)
        assert result.train_state.step == 1
        assert len([one for one in said if one.startswith(sentence)]) == 1


# --- on a GPU -------------------------------------------------------------------------------------


def taken(
    config: TrainConfig, fast: bool, num: int = 3
) -> tuple[TrainStep, list[torch.Tensor], Any]:
    """Some steps on the GPU; the gradients' norms, and the means of the losses."""
    device = torch.device("cuda", 0)
    step, batches, world = made(config, device), drawn(config), World(0, 1, device)
    norms: list[torch.Tensor] = []
    with without_tf32(), kernel_mode("fused" if fast else "plain"):
        steps: Any = (
            captured_steps(step, batches, [0], CudaGraphs())
            if fast
            else EagerSteps(step, batches, world)
        )
        step.model.train()
        for number, (draw, _) in enumerate(islice(batches.planned_from(), num)):
            seed(1, number)
            steps.run(draw)
            norms.append(step.norm.clone())
    return step, norms, step.accumulator.means(world)


def off(values: Iterable[torch.Tensor], others: Iterable[torch.Tensor]) -> float:
    """How far tensors are from others, all together, in terms of the length of the others."""
    one, other = (torch.cat([each.flatten() for each in side]) for side in (values, others))
    return float((one - other).norm() / other.norm())


def assert_alike(ours: Any, theirs: Any, close: float, gradients: float) -> None:
    """Of what `taken` gave: losses, norms and, as first moments, gradients.

    Single weights say little: Adam's first steps are as long where a gradient is only rounding.
    """
    (fast, fast_norms, fast_means), (plain, plain_norms, plain_means) = ours, theirs
    assert fast_means.metrics == pytest.approx(plain_means.metrics, rel=close)
    for one, other in zip(fast_norms, plain_norms, strict=True):
        torch.testing.assert_close(one, other, rtol=gradients, atol=0)
    moments = (
        [state["exp_avg"] for state in step.optimizer.state.values()] for step in (fast, plain)
    )
    assert off(*moments) <= gradients


@torch.no_grad()
def later(step: TrainStep, config: TrainConfig) -> float:
    """What the first batch costs now, in plain PyTorch."""
    batches, model = drawn(config), step.model.eval()
    with without_tf32(), kernel_mode("plain"):
        losses = model(model.pairs(next(iter(batches.epoch(0)))))
    return float(losses.total().mean())


@needs_gpu
@pytest.mark.parametrize(("gate", "spm"), SYSTEMS)
@pytest.mark.parametrize("batch_size", [4, 40])
def test_captured_steps_on_cuda_are_the_plain_ones(
    tiny: TrainConfig, gate: bool, spm: bool, batch_size: int
) -> None:
    config = changed(
        system(tiny, gate, spm),
        system={"dropout": 0.0},
        train={"batch_size": batch_size},
        run={"precision": "float32"},
    )
    begin = weights(made(config, torch.device("cuda", 0)))
    ours, theirs = taken(config, True), taken(config, False)
    assert_alike(ours, theirs, 1e-4, 1e-4)
    fast, plain = (weights(step) for step, *_ in (ours, theirs))
    changes = ([one[name] - begin[name] for name in begin] for one in (fast, plain))
    assert off(*changes) <= 0.1  # noise of 1e-4 in the gradients makes 0.065; a lost step, 1/3
    losses = [later(step, config) for step, *_ in (ours, theirs)]
    assert losses[0] == pytest.approx(losses[1], rel=1e-4)


@needs_gpu
@pytest.mark.parametrize(("gate", "spm"), SYSTEMS)
def test_captured_steps_on_cuda_are_the_plain_ones_in_bfloat16(
    tiny: TrainConfig, gate: bool, spm: bool
) -> None:
    config = changed(
        system(tiny, gate, spm), system={"dropout": 0.0}, run={"precision": "bfloat16"}
    )
    assert_alike(taken(config, True), taken(config, False), 2e-2, 5e-2)


@needs_gpu
@pytest.mark.parametrize("optimizer", OPTIMIZERS, ids=repr)
def test_every_optimizer_takes_the_same_steps_on_cuda(
    tiny: TrainConfig, optimizer: OptimizerConfig
) -> None:
    config = replace(tiny, optimizer=optimizer)
    config = changed(config, system={"dropout": 0.0}, run={"precision": "float32"})
    start = weights(made(config, torch.device("cuda", 0)))
    (fast, *_), (plain, *_) = (taken(config, way) for way in (True, False))
    ours, theirs = (weights(step) for step in (fast, plain))
    changes = ([one[name] - start[name] for name in start] for one in (ours, theirs))
    assert off(*changes) <= 0.1  # of which a lost step would make 1/3


@needs_gpu
def test_full_batches_have_the_same_masks_on_cuda(tiny: TrainConfig) -> None:
    """Without fused kernels, which may throw their own."""
    config = changed(tiny, train={"batch_size": 1}, run={"precision": "float32"})
    device = torch.device("cuda", 0)
    means = []
    with kernel_mode("plain"):
        for fast in (True, False):
            step, batches = made(config, device), drawn(config)
            steps: Any = (
                captured_steps(step, batches, [0], CudaGraphs())
                if fast
                else EagerSteps(step, batches, World(0, 1, device))
            )
            step.model.train()
            for number, (draw, _) in enumerate(islice(batches.planned_from(), 6)):
                seed(1, number)
                steps.run(draw)
            means.append(step.accumulator.means(World(0, 1, device)).metrics)
    assert means[0] == pytest.approx(means[1], rel=1e-4)


@needs_gpu
def test_the_same_seeds_give_the_same_bits_on_cuda(
    tmp_path: Path, tiny: TrainConfig, runs: Any
) -> None:
    config = changed(tiny, run={"device": "cuda"})
    for name in ("one", "two"):
        train(config, tmp_path / name)
    assert runs.metrics(tmp_path / "one") == runs.metrics(tmp_path / "two")
    assert runs.same(runs.weights(tmp_path / "one"), runs.weights(tmp_path / "two"))


@needs_gpu
@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_the_same_seeds_give_the_same_bits_at_the_papers_sizes_on_cuda(
    tmp_path: Path, prepare_newsroom: Any, tiny: TrainConfig, runs: Any, precision: str
) -> None:
    """Frequent words stand in a batch hundreds of times: sums whose order must not vary."""
    dataset = prepare_newsroom(tmp_path, 6000, seed=1, merges=2000, num_valid=200)
    config = changed(
        tiny,
        data={"dataset": dataset},
        system={"embedding_size": 200, "hidden_size": 400},
        train={"batch_size": 256, "epochs": 3},
        run={"device": "cuda", "precision": precision},
    )
    outcomes = [train(config, tmp_path / name) for name in ("one", "two")]
    assert outcomes[0].train_state.step >= 60
    assert runs.metrics(tmp_path / "one") == runs.metrics(tmp_path / "two")
    assert runs.same(runs.weights(tmp_path / "one"), runs.weights(tmp_path / "two"))


@needs_gpu
def test_stopped_and_resumed_is_as_one_on_cuda(
    tmp_path: Path, tiny: TrainConfig, runs: Any
) -> None:
    config = changed(tiny, run={"device": "cuda"})
    train(config, tmp_path / "whole")
    outcomes = [train(config, tmp_path / "parts", max_minutes=0)]
    while outcomes[-1].stopped and len(outcomes) < 5:
        outcomes.append(train(config, tmp_path / "parts", resume=True, max_minutes=0))
    train(config, tmp_path / "parts", resume=True)
    assert runs.same(runs.weights(tmp_path / "whole"), runs.weights(tmp_path / "parts"))


@needs_gpu
def test_a_captured_run_goes_from_cuda_to_cpu_and_back(
    tmp_path: Path, tiny: TrainConfig, runs: Any
) -> None:
    config = changed(tiny, system={"dropout": 0.0}, run={"precision": "float32"})
    train(config, tmp_path / "cpu")
    outcome = None
    for device, fast in (("cuda", True), ("cpu", True), ("cuda", False), ("cuda", True)):
        here = changed(config, run={"device": device, "fast": fast})
        outcome = train(here, tmp_path / "parts", resume=True, max_minutes=0)
        assert outcome.stopped
    outcome = train(changed(config, run={"device": "cuda"}), tmp_path / "parts", resume=True)
    assert outcome.train_state.finished
    ours, theirs = (runs.lines(tmp_path / name, "valid")[-1] for name in ("parts", "cpu"))
    assert ours["per_token"] == pytest.approx(theirs["per_token"], rel=1e-3)


@needs_gpu
def test_nothing_is_captured_after_the_start_on_cuda(
    tmp_path: Path, tiny: TrainConfig, monkeypatch: pytest.MonkeyPatch, runs: Any
) -> None:
    begun = [0]
    real = torch.cuda.CUDAGraph.capture_begin
    learned = CapturedSteps._learn

    def counted(self: Any, *arguments: Any, **named: Any) -> None:
        begun[0] += 1
        real(self, *arguments, **named)

    calls = [0]

    def learn(self: CapturedSteps, shape: cuda_graphs.Shape) -> None:
        calls[0] += 1
        learned(self, shape)

    monkeypatch.setattr(torch.cuda.CUDAGraph, "capture_begin", counted)
    monkeypatch.setattr(CapturedSteps, "_learn", learn)
    train(changed(tiny, run={"device": "cuda"}), tmp_path / "run")
    start = runs.lines(tmp_path / "run", "start")[0]
    assert begun[0] == start["graphs"]
    assert calls[0] == 2 * start["graphs"]  # to warm up and to capture
    assert start["gpu_memory"] > 0
    assert start["seconds_to_rehearse"] > 0
