"""The training loop: one function that reads top to bottom."""

import math
import time
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from ledeline.config.section import flatten
from ledeline.core.errors import ConfigError, DatasetError, TrainingError
from ledeline.core.provenance import circumstances
from ledeline.core.signals import Stop
from ledeline.data.batches import Batches
from ledeline.data.dataset import Dataset, Split
from ledeline.model.build import build
from ledeline.model.gpu.dispatch import kernel_mode, without_tf32
from ledeline.model.layers.dropout import seed
from ledeline.model.system import System
from ledeline.model.systems import SYSTEMS
from ledeline.train.callbacks import Callback, NullCallback, RunStart, StepReport
from ledeline.train.cuda_graphs import (
    MULTIPLE,
    CapturedSteps,
    CudaGraphs,
    can_capture,
    capture_obstacle,
    wants_capture,
)
from ledeline.train.loss_accumulator import MeanLosses
from ledeline.train.metrics_log import NO_TENSORBOARD, MetricsLog
from ledeline.train.optimizers import build_optimizer, set_rate
from ledeline.train.out_of_memory import explain_out_of_memory
from ledeline.train.precision import refuse_unsupported
from ledeline.train.processes import World, join_processes
from ledeline.train.run_folder import (
    RunFolder,
    has_checkpoint,
    load_first_weights,
    restore,
    share,
)
from ledeline.train.schedules import RunPosition
from ledeline.train.state import TrainState
from ledeline.train.step import EagerSteps, Steps, TrainStep
from ledeline.train.throughput import StepTimer, Throughput
from ledeline.train.train_config import TrainConfig
from ledeline.train.validation import Validation, validation_loss, write_headlines

REPORT_SECONDS: Final = 0.25  # between two reports of a GPU, which has to be waited for


@dataclass(frozen=True)
class TrainResult:
    """How a run ended."""

    folder: Path
    train_state: TrainState
    stopped: str  # why it stopped before its end; empty where it reached it
    signal: int | None  # that stopped it


def train(
    config: TrainConfig,
    folder: Path,
    *,
    resume: bool = False,
    max_minutes: float | None = None,
    callback: Callback | None = None,
) -> TrainResult:
    """Train a system into a run folder, from the beginning or from its newest checkpoint.

    The same configuration and data give the same weights, however often the run was stopped or
    killed and resumed, and (up to rounding) with any number of processes.
    """
    with ExitStack() as stack:
        stack.enter_context(explain_out_of_memory(config.train.batch_size))
        stop = stack.enter_context(Stop(max_minutes).listening())
        world = stack.enter_context(join_processes(config.run.device))
        callback = callback if callback is not None and world.is_leader else NullCallback()
        refuse_unsupported(config.run, world.device)

        # The data, the model, its optimizer, and the state of the run.
        dataset = Dataset(config.data.dataset)
        world.require_same(dataset.checksum, f"the dataset {config.data.dataset}")
        rest = {key: value for key, value in flatten(config).items() if key != "data.dataset"}
        world.require_same(str(rest), "the configuration")
        stack.enter_context(without_tf32())  # float32 is float32 everywhere
        if not config.run.fast:
            stack.enter_context(kernel_mode("plain"))
        batches = _batches(dataset, config, world)
        model = _model(config, dataset, world)
        optimizer = build_optimizer(config.optimizer, model.parameters(), world.device)
        train_state, run_folder = TrainState(), None
        if world.is_leader and config.train.start_from is not None and not has_checkpoint(folder):
            load_first_weights(config.train.start_from, model, dataset)  # nothing is written yet
        if world.is_leader:
            run_folder = stack.enter_context(
                RunFolder.opened(folder, config, dataset, resume, callback.on_message)
            )
            if checkpoint := run_folder.newest_checkpoint(callback.on_message):
                train_state = restore(checkpoint, config.optimizer, model, optimizer)
                train_state = train_state.with_limits(config.train)
                run_folder.clean_up(train_state)
        train_state = share(train_state, config.optimizer, model, optimizer, world)
        step = TrainStep(model, world.wrap(model), optimizer, config)
        steps = _steps(step, batches, train_state, config, world, callback)
        setup_info = {}
        if world.device.type == "cuda" and not train_state.finished:
            began = time.perf_counter()
            _validate(model, dataset, config, world, train_state, callback)  # compiles kernels
            setup_info = {"seconds_to_rehearse": round(time.perf_counter() - began, 2)}
        steps.prepare(callback.progress)
        log_folder = folder if world.is_leader else None
        log = stack.enter_context(MetricsLog(log_folder, train_state.step))
        about = {"processes": world.size, **circumstances(), **setup_info, **steps.setup_info}
        log.write("start", train_state.step, **about)
        callback.on_start(_run_start(config, model, dataset, world, train_state))
        if log.lacks_tensorboard:
            callback.on_message(NO_TENSORBOARD)

        # The steps.
        timer, stops, saved = StepTimer(), False, time.monotonic()
        next_report = train_state.step + 1
        for draw, next_position in batches.planned_from(train_state.position):
            if train_state.finished or stops:
                break
            rate = _learning_rate(config, train_state, len(batches))
            set_rate(optimizer, rate)
            seed(config.train.seed, train_state.step)
            model.train()
            if draw.number == 0:
                model.start_epoch()
            steps.run(draw)
            timer.step(len(draw.rows))
            train_state = train_state.after_step(next_position)

            # A report: the losses, whether they are finite, whether to stop.
            ends_epoch = next_position.batch == 0
            logs = ends_epoch or train_state.step % config.run.report_every == 0
            saves = ends_epoch or _is_multiple(train_state.step, config.run.checkpoint_every)
            if not (logs or saves or train_state.step >= next_report):
                continue
            losses, norm = step.accumulator.means(world), float(step.norm)
            _refuse_not_finite(losses, norm, train_state, config, folder)
            stops = world.any(stop.requested)
            throughput = timer.read()
            next_report = train_state.step + _steps_between_reports(world, throughput)
            report = _step_report(config, len(batches), train_state, losses, norm, rate, throughput)
            callback.on_step(replace(report, seconds_left=stop.at_most(report.seconds_left)))
            if logs:
                log.write("train", train_state.step, **report.metrics)
                step.accumulator.clear()

            # The end of an epoch, and checkpoints.
            if ends_epoch:
                validation = _validate(model, dataset, config, world, train_state, callback)
                _refuse_not_finite(validation.losses, 0.0, train_state, config, folder)
                train_state = train_state.after_validation(
                    validation.losses.per_token, config.train
                )
                best = train_state.best_step == train_state.step
                log.write("valid", train_state.step, **validation.metrics, best=best)
                callback.on_validation(replace(validation, best=best))
            saves = saves or time.monotonic() - saved >= 60 * config.run.checkpoint_minutes
            if run_folder is not None and (saves or stops):
                run_folder.save(train_state, model, optimizer)
            if ends_epoch or saves:
                saved = time.monotonic()
                timer.start()

        stopped = stop.reason if stops and not train_state.finished else ""
        log.write("stop", train_state.step, reason=stopped or train_state.finished)
        return TrainResult(folder, train_state, stopped, stop.signal if stopped else None)


# --- the parts of the loop ------------------------------------------------------------------------


def _training_pairs(dataset: Dataset, config: TrainConfig) -> Split:
    split, wanted = dataset["train"], config.data.pairs
    if wanted is not None and wanted > len(split):
        raise DatasetError(
            f"data.pairs = {wanted}, and {dataset.folder} has {len(split)} pairs to learn from"
        )
    return split if wanted is None else split.first(wanted)


def _batches(dataset: Dataset, config: TrainConfig, world: World) -> Batches:
    unit = config.train.batch_unit
    if unit == "words" and not SYSTEMS[config.system.name].learns_words:
        raise ConfigError(
            f'train.batch_unit = "words": the system {config.system.name} learns whole headlines '
            'only; leave it out, or set it to "pairs"'
        )
    for split in ("train", "valid"):
        if not len(dataset[split]):
            raise DatasetError(f"{dataset.folder} has no pairs in its split {split}")
    return Batches(
        _training_pairs(dataset, config),
        size=config.train.batch_size,
        seed=config.train.seed,
        unit=unit,
        equal_lengths=config.train.equal_lengths,
        similar_headlines=config.train.similar_headlines,
        multiple=MULTIPLE if world.device.type == "cuda" else 1,
        rank=world.rank,
        world_size=world.size,
    )


def _model(config: TrainConfig, dataset: Dataset, world: World) -> System:
    """The system with its first weights, on its device."""
    size = dataset.tokenizer.vocabulary_size
    model = build(config.model, size, config.train.seed, config.init).to(world.device)
    smoothing = config.train.label_smoothing
    if smoothing and model.label_smoothing is None:
        raise ConfigError(
            f"train.label_smoothing = {smoothing:g}: the system {config.system.name} has no label "
            "smoothing; leave it out"
        )
    if smoothing:
        model.label_smoothing = smoothing
    return model


def _steps(
    step: TrainStep,
    batches: Batches,
    train_state: TrainState,
    config: TrainConfig,
    world: World,
    callback: Callback,
) -> Steps:
    """The fastest way to take the steps that are left."""
    if can_capture(config, step.model, world):
        last = 0 if train_state.finished else config.train.epochs
        epochs = range(train_state.position.epoch, last)
        return CapturedSteps(step, batches, epochs, CudaGraphs())
    if wants_capture(config, world):
        what = capture_obstacle(config, step.model)
        callback.on_message(f"{what} cannot be captured in CUDA graphs, so steps take longer")
    return EagerSteps(step, batches, world)


def _learning_rate(config: TrainConfig, train_state: TrainState, steps_per_epoch: int) -> float:
    """The learning rate of the next step."""
    epoch, epochs = train_state.position.epoch, config.train.epochs
    at = RunPosition(train_state.step, epoch, steps_per_epoch, epochs, train_state.losses)
    return config.optimizer.learning_rate * config.schedule.factor(at)


def _steps_between_reports(world: World, throughput: Throughput) -> int:
    """How many steps until the next report, the same number in all processes."""
    if world.device.type == "cpu":
        return 1
    seconds = world.sum([throughput.seconds_per_step])[0] / world.size
    return max(1, round(REPORT_SECONDS / max(seconds, 1e-6)))


def _is_multiple(step: int, number: int) -> bool:
    return number > 0 and step % number == 0


def _refuse_not_finite(
    losses: MeanLosses, norm: float, train_state: TrainState, config: TrainConfig, folder: Path
) -> None:
    """Stop before a loss that is not finite reaches a checkpoint."""
    found = losses.metrics | {"gradient norm": norm}
    wrong = [f"{name} {value}" for name, value in found.items() if not math.isfinite(value)]
    if wrong:
        raise TrainingError(
            f"training diverged at step {train_state.step}: {', '.join(wrong)}; the checkpoints "
            f"in {folder} are from before: continue from them with --resume and a lower rate, such "
            f"as --optimizer.learning_rate={config.optimizer.learning_rate / 2:g}"
        )


def _validate(
    model: System,
    dataset: Dataset,
    config: TrainConfig,
    world: World,
    train_state: TrainState,
    callback: Callback,
) -> Validation:
    losses = validation_loss(model, dataset, config, world, callback.progress)
    epoch = train_state.position.epoch  # counted from 0, and already that of the next step
    if not world.is_leader:
        return Validation(train_state.step, epoch, losses, None, 0, [])
    return Validation(train_state.step, epoch, losses, *write_headlines(model, dataset, config))


def _step_report(
    config: TrainConfig,
    num_batches: int,
    train_state: TrainState,
    losses: MeanLosses,
    norm: float,
    rate: float,
    throughput: Throughput,
) -> StepReport:
    epoch, batch = train_state.position
    steps_left = config.train.epochs * num_batches - train_state.step
    return StepReport(
        step=train_state.step,
        epoch=epoch + (batch > 0),
        num_epochs=config.train.epochs,
        batch=batch or num_batches,
        num_batches=num_batches,
        losses=losses,
        norm=norm,
        rate=rate,
        pairs_per_second=throughput.pairs_per_second,
        seconds_left=steps_left * throughput.seconds_per_step,
    )


def _run_start(
    config: TrainConfig, model: System, dataset: Dataset, world: World, train_state: TrainState
) -> RunStart:
    return RunStart(
        system=config.model.name,
        num_parameters=sum(parameter.numel() for parameter in model.parameters()),
        vocabulary=dataset.tokenizer.vocabulary_size,
        num_pairs=config.data.pairs or len(dataset["train"]),
        num_epochs=config.train.epochs,
        device=str(world.device),
        num_processes=world.size,
        step=train_state.step,
    )
