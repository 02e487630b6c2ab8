"""The training loop: one function that reads top to bottom."""

import math
import time
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path

from ledeline.config import TrainConfig
from ledeline.core.errors import DatasetError, TrainingError
from ledeline.core.provenance import circumstances
from ledeline.core.signals import Stop
from ledeline.data.batches import Batches
from ledeline.data.dataset import Dataset, Split
from ledeline.model.gpu.dispatch import exact, kernel_mode
from ledeline.model.layers.dropout import seed
from ledeline.model.systems.encdec import EncDec
from ledeline.train.callbacks import Callback, NullCallback, RunStart, StepReport
from ledeline.train.cuda_graphs import MULTIPLE, Captured, CudaGraphs, can_capture
from ledeline.train.losses import Means
from ledeline.train.metrics_log import NO_TENSORBOARD, MetricsLog
from ledeline.train.out_of_memory import explain_out_of_memory
from ledeline.train.precision import refuse_unsupported
from ledeline.train.processes import World, joined
from ledeline.train.run_folder import Run, begun, restore, share, start_from, values
from ledeline.train.state import TrainState, learning_rate
from ledeline.train.step import Plain, Step, Steps, adam, set_rate
from ledeline.train.throughput import Clock, Pace
from ledeline.train.validation import Validation, validation_loss, write_headlines

SECONDS_A_LOOK = 0.25  # a look waits for the GPU; on a CPU it costs nothing, and each step has one


@dataclass(frozen=True)
class Outcome:
    """How a run ended."""

    folder: Path
    train_state: TrainState
    stopped: str  # why it stopped before its end; empty where it came to it
    signal: int | None  # that stopped it


def train(
    config: TrainConfig,
    folder: Path,
    *,
    resume: bool = False,
    max_minutes: float | None = None,
    callback: Callback | None = None,
) -> Outcome:
    """Train a system into a run folder, from the beginning or from its newest checkpoint.

    The same configuration and data give the same weights, however often the run was stopped or
    killed and resumed, and (up to rounding) with any number of processes.
    """
    with ExitStack() as stack:
        stack.enter_context(explain_out_of_memory(config.train.batch_size))
        stop = stack.enter_context(Stop(max_minutes).listening())
        world = stack.enter_context(joined(config.run.device))
        callback = callback if callback is not None and world.leads else NullCallback()
        refuse_unsupported(config.run, world.device)

        # The data, the model, its optimizer, and where the run stands.
        dataset = Dataset(config.data.dataset)
        world.agree(dataset.checksum, f"the dataset {config.data.dataset}")
        rest = {key: value for key, value in values(config).items() if key != "data.dataset"}
        world.agree(str(rest), "the configuration")
        stack.enter_context(exact())  # float32 is float32 in every way
        if not config.run.fast:
            stack.enter_context(kernel_mode("plain"))
        batches = _batches(dataset, config, world)
        size = dataset.tokenizer.vocabulary_size
        model = EncDec(config.system, size, config.train.seed).to(world.device)
        optimizer = adam(model)
        train_state, run = TrainState(), None
        if world.leads and config.train.start_from is not None and not begun(folder):
            start_from(config.train.start_from, model, dataset)  # before anything is written
        if world.leads:
            run = stack.enter_context(
                Run.opened(folder, config, dataset, resume, callback.on_message)
            )
            if checkpoint := run.newest(callback.on_message):
                restore(checkpoint, model, optimizer)
                train_state = TrainState.from_json(checkpoint.state["standing"]).judged(
                    config.train
                )
                run.keep(train_state)
        train_state = share(train_state, model, optimizer, world)
        step = Step(model, world.wrap(model), optimizer, config)
        steps, began = _steps(step, batches, train_state, config, world), time.perf_counter()
        rehearsed = {}
        if world.device.type == "cuda" and not train_state.finished:
            _validate(
                model, dataset, config, world, train_state, callback
            )  # a rehearsal: all compiles
            rehearsed = {"seconds_to_rehearse": round(time.perf_counter() - began, 2)}
        steps.prepare(callback.progress)
        journal = stack.enter_context(MetricsLog(folder if world.leads else None, train_state.step))
        about = {"processes": world.size, **circumstances(), **rehearsed, **steps.figures}
        journal.write("start", train_state.step, **about)
        callback.on_start(_beginning(config, model, dataset, world, train_state))
        if journal.lacks_tensorboard:
            callback.on_message(NO_TENSORBOARD)

        # The steps.
        clock, stops, next_look, saved = Clock(), False, train_state.step + 1, time.monotonic()
        for draw, behind in batches.planned_from(train_state.position):
            if train_state.finished or stops:
                break
            rate = learning_rate(config.train, train_state.position.epoch)
            set_rate(optimizer, rate)
            seed(config.train.seed, train_state.step)
            model.train()
            steps.take(draw)
            clock.step(len(draw.rows))
            train_state = train_state.stepped(behind)

            # A look: what the steps cost, whether all is well, whether to stop.
            ends_epoch = behind.batch == 0
            reports = ends_epoch or train_state.step % config.run.report_every == 0
            saves = ends_epoch or _is_multiple(train_state.step, config.run.checkpoint_every)
            if not (reports or saves or train_state.step >= next_look):
                continue
            means, norm = step.accumulator.means(world), float(step.norm)
            _refuse_not_finite(means, norm, train_state, config, folder)
            stops = world.any(stop.requested)
            pace = clock.read()
            next_look = train_state.step + _steps_a_look(world, pace)
            look = _look(config, batches, train_state, behind.batch, means, norm, rate, pace)
            callback.on_step(replace(look, seconds_left=stop.at_most(look.seconds_left)))
            if reports:
                journal.write("train", train_state.step, **look.figures)
                step.accumulator.clear()

            # The end of an epoch, and what is kept of the run.
            if ends_epoch:
                validation = _validate(model, dataset, config, world, train_state, callback)
                _refuse_not_finite(validation.means, 0.0, train_state, config, folder)
                train_state = train_state.validated(validation.means.per_token, config.train)
                best = train_state.best_step == train_state.step
                journal.write("valid", train_state.step, **validation.figures, best=best)
                callback.on_validation(replace(validation, best=best))
            saves = saves or time.monotonic() - saved >= 60 * config.run.checkpoint_minutes
            if run is not None and (saves or stops):
                run.save(train_state, model, optimizer)
            if ends_epoch or saves:
                saved = time.monotonic()
                clock.start()

        stopped = stop.reason if stops and not train_state.finished else ""
        journal.write("stop", train_state.step, reason=stopped or train_state.finished)
        return Outcome(folder, train_state, stopped, stop.signal if stopped else None)


# --- what the loop is made of ---------------------------------------------------------------------


def _training_pairs(dataset: Dataset, config: TrainConfig) -> Split:
    split, wanted = dataset["train"], config.data.pairs
    if wanted is not None and wanted > len(split):
        raise DatasetError(
            f"data.pairs = {wanted}, and {dataset.folder} has {len(split)} pairs to learn from"
        )
    return split if wanted is None else split.first(wanted)


def _batches(dataset: Dataset, config: TrainConfig, world: World) -> Batches:
    for split in ("train", "valid"):
        if not len(dataset[split]):
            raise DatasetError(f"{dataset.folder} has no pairs in its split {split}")
    return Batches(
        _training_pairs(dataset, config),
        size=config.train.batch_size,
        seed=config.train.seed,
        equal_lengths=config.train.equal_lengths,
        multiple=MULTIPLE if world.device.type == "cuda" else 1,
        rank=world.rank,
        world_size=world.size,
    )


def _steps(
    step: Step,
    batches: Batches,
    train_state: TrainState,
    config: TrainConfig,
    world: World,
) -> Steps:
    """The fastest way to take the steps that are left."""
    if not can_capture(config, world):
        return Plain(step, batches, world)
    epochs = range(train_state.position.epoch, 0 if train_state.finished else config.train.epochs)
    return Captured(step, batches, epochs, CudaGraphs())


def _steps_a_look(world: World, pace: Pace) -> int:
    """How many steps until the next look, the same number in all processes."""
    if world.device.type == "cpu":
        return 1
    seconds = world.sum([pace.seconds_per_step])[0] / world.size
    return max(1, round(SECONDS_A_LOOK / max(seconds, 1e-6)))


def _is_multiple(step: int, number: int) -> bool:
    return number > 0 and step % number == 0


def _refuse_not_finite(
    means: Means, norm: float, train_state: TrainState, config: TrainConfig, folder: Path
) -> None:
    """Stop before a loss that is no number reaches a checkpoint."""
    found = means.figures | {"gradient norm": norm}
    wrong = [f"{name} {value}" for name, value in found.items() if not math.isfinite(value)]
    if wrong:
        raise TrainingError(
            f"training went astray at step {train_state.step}: {', '.join(wrong)}; the checkpoints "
            f"in {folder} are from before: go on from them with --resume and a lower rate, such as "
            f"--train.learning_rate={config.train.learning_rate / 2:g}"
        )


def _validate(
    model: EncDec,
    dataset: Dataset,
    config: TrainConfig,
    world: World,
    train_state: TrainState,
    callback: Callback,
) -> Validation:
    means = validation_loss(model, dataset, config, world, callback.progress)
    epoch = train_state.position.epoch  # counted from 0, and the next one already
    if not world.leads:
        return Validation(train_state.step, epoch, means, None, 0, [])
    return Validation(train_state.step, epoch, means, *write_headlines(model, dataset, config))


def _look(
    config: TrainConfig,
    batches: Batches,
    train_state: TrainState,
    batch: int,
    means: Means,
    norm: float,
    rate: float,
    pace: Pace,
) -> StepReport:
    num_batches = len(batches)
    return StepReport(
        step=train_state.step,
        epoch=train_state.position.epoch + (batch > 0),
        num_epochs=config.train.epochs,
        batch=batch or num_batches,
        num_batches=num_batches,
        means=means,
        norm=norm,
        rate=rate,
        pairs_per_second=pace.pairs_per_second,
        seconds_left=(config.train.epochs * num_batches - train_state.step) * pace.seconds_per_step,
    )


def _beginning(
    config: TrainConfig, model: EncDec, dataset: Dataset, world: World, train_state: TrainState
) -> RunStart:
    return RunStart(
        system=config.system.name,
        num_parameters=sum(parameter.numel() for parameter in model.parameters()),
        vocabulary=dataset.tokenizer.vocabulary_size,
        num_pairs=config.data.pairs or len(dataset["train"]),
        num_epochs=config.train.epochs,
        device=str(world.device),
        num_processes=world.size,
        step=train_state.step,
    )
