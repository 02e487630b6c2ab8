"""The training loop: one function that reads top to bottom."""

import math
import time
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path

from ledeline.batches import Batches
from ledeline.config import TrainConfig
from ledeline.dataset import Dataset, Split
from ledeline.errors import DatasetError, TrainingError
from ledeline.model.dropout import seed
from ledeline.model.gpu.support import exact, way
from ledeline.model.seq2seq import Seq2Seq
from ledeline.train.captured import MULTIPLE, Captured, CudaGraphs, can_capture
from ledeline.train.clock import Clock, Pace
from ledeline.train.journal import Journal, circumstances
from ledeline.train.memory import told_if_short
from ledeline.train.precision import refuse_unsupported
from ledeline.train.processes import World, joined
from ledeline.train.run import Run, begun, restore, share, start_from, values
from ledeline.train.standing import Standing, learning_rate
from ledeline.train.step import Plain, Step, Steps, adam, set_rate
from ledeline.train.stop import Stop
from ledeline.train.tally import Means
from ledeline.train.validation import Validation, validation_loss, write_headlines
from ledeline.train.watch import Beginning, Look, Nobody, Watch

SECONDS_A_LOOK = 0.25  # a look waits for the GPU; on a CPU it costs nothing, and each step has one


@dataclass(frozen=True)
class Outcome:
    """How a run ended."""

    folder: Path
    standing: Standing
    stopped: str  # why it stopped before its end; empty where it came to it
    signal: int | None  # that stopped it


def train(
    config: TrainConfig,
    folder: Path,
    *,
    resume: bool = False,
    max_minutes: float | None = None,
    watch: Watch | None = None,
) -> Outcome:
    """Train a system into a run folder, from the beginning or from its newest checkpoint.

    The same configuration and data give the same weights, however often the run was stopped or
    killed and resumed, and (up to rounding) with any number of processes.
    """
    with ExitStack() as stack:
        stack.enter_context(told_if_short(config.train.batch_size))
        stop = stack.enter_context(Stop(max_minutes).listening())
        world = stack.enter_context(joined(config.run.device))
        watch = watch if watch is not None and world.leads else Nobody()
        refuse_unsupported(config.run, world.device)

        # The data, the model, its optimizer, and where the run stands.
        dataset = Dataset(config.data.dataset)
        world.agree(dataset.checksum, f"the dataset {config.data.dataset}")
        rest = {key: value for key, value in values(config).items() if key != "data.dataset"}
        world.agree(str(rest), "the configuration")
        stack.enter_context(exact())  # float32 is float32 in every way
        if not config.run.fast:
            stack.enter_context(way("plain"))
        batches = _batches(dataset, config, world)
        model = Seq2Seq(config.system, len(dataset.subwords), config.train.seed).to(world.device)
        optimizer = adam(model)
        standing, run = Standing(), None
        if world.leads and config.train.start_from is not None and not begun(folder):
            start_from(config.train.start_from, model, dataset)  # before anything is written
        if world.leads:
            run = stack.enter_context(Run.opened(folder, config, dataset, resume, watch.says))
            if checkpoint := run.newest(watch.says):
                restore(checkpoint, model, optimizer)
                standing = Standing.from_json(checkpoint.state["standing"]).judged(config.train)
                run.keep(standing)
        standing = share(standing, model, optimizer, world)
        step = Step(model, world.wrap(model), optimizer, config)
        steps, began = _steps(step, batches, standing, config, world), time.perf_counter()
        rehearsed = {}
        if world.device.type == "cuda" and not standing.finished:
            _validate(model, dataset, config, world, standing, watch)  # a rehearsal: all compiles
            rehearsed = {"seconds_to_rehearse": round(time.perf_counter() - began, 2)}
        steps.prepare(watch.progress)
        journal = stack.enter_context(Journal(folder if world.leads else None, standing.step))
        about = {"processes": world.size, **circumstances(), **rehearsed, **steps.figures}
        journal.write("start", standing.step, **about)
        watch.begins(_beginning(config, model, dataset, world, standing))

        # The steps.
        clock, stops, next_look, saved = Clock(), False, standing.step + 1, time.monotonic()
        for draw, behind in batches.draws(standing.position):
            if standing.finished or stops:
                break
            rate = learning_rate(config.train, standing.position.epoch)
            set_rate(optimizer, rate)
            seed(config.train.seed, standing.step)
            model.train()
            steps.take(draw)
            clock.step(len(draw.rows))
            standing = standing.stepped(behind)

            # A look: what the steps cost, whether all is well, whether to stop.
            ends_epoch = behind.batch == 0
            reports = ends_epoch or standing.step % config.run.report_every == 0
            saves = ends_epoch or _is_multiple(standing.step, config.run.checkpoint_every)
            if not (reports or saves or standing.step >= next_look):
                continue
            means, norm = step.tally.means(world), float(step.norm)
            _refuse_not_finite(means, norm, standing, config, folder)
            stops = world.any(stop.wanted)
            pace = clock.read()
            next_look = standing.step + _steps_a_look(world, pace)
            look = _look(config, batches, standing, behind.batch, means, norm, rate, pace)
            watch.looks(replace(look, seconds_left=stop.at_most(look.seconds_left)))
            if reports:
                journal.write("train", standing.step, **look.figures)
                step.tally.clear()

            # The end of an epoch, and what is kept of the run.
            if ends_epoch:
                validation = _validate(model, dataset, config, world, standing, watch)
                _refuse_not_finite(validation.means, 0.0, standing, config, folder)
                standing = standing.validated(validation.means.per_token, config.train)
                best = standing.best_step == standing.step
                journal.write("valid", standing.step, **validation.figures, best=best)
                watch.validates(replace(validation, best=best))
            saves = saves or time.monotonic() - saved >= 60 * config.run.checkpoint_minutes
            if run is not None and (saves or stops):
                run.save(standing, model, optimizer)
            if ends_epoch or saves:
                saved = time.monotonic()
                clock.start()

        stopped = stop.reason if stops and not standing.finished else ""
        journal.write("stop", standing.step, reason=stopped or standing.finished)
        return Outcome(folder, standing, stopped, stop.signal if stopped else None)


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
    standing: Standing,
    config: TrainConfig,
    world: World,
) -> Steps:
    """The fastest way to take the steps that are left."""
    if not can_capture(config, world):
        return Plain(step, batches, world)
    epochs = range(standing.position.epoch, 0 if standing.finished else config.train.epochs)
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
    means: Means, norm: float, standing: Standing, config: TrainConfig, folder: Path
) -> None:
    """Stop before a loss that is no number reaches a checkpoint."""
    found = means.figures | {"gradient norm": norm}
    wrong = [f"{name} {value}" for name, value in found.items() if not math.isfinite(value)]
    if wrong:
        raise TrainingError(
            f"training went astray at step {standing.step}: {', '.join(wrong)}; the checkpoints in "
            f"{folder} are from before: go on from them with --resume and a lower rate, such as "
            f"--train.learning_rate={config.train.learning_rate / 2:g}"
        )


def _validate(
    model: Seq2Seq,
    dataset: Dataset,
    config: TrainConfig,
    world: World,
    standing: Standing,
    watch: Watch,
) -> Validation:
    means = validation_loss(model, dataset, config, world, watch.progress)
    epoch = standing.position.epoch  # counted from 0, and the next one already
    if not world.leads:
        return Validation(standing.step, epoch, means, None, 0, [])
    return Validation(standing.step, epoch, means, *write_headlines(model, dataset, config))


def _look(
    config: TrainConfig,
    batches: Batches,
    standing: Standing,
    batch: int,
    means: Means,
    norm: float,
    rate: float,
    pace: Pace,
) -> Look:
    num_batches = len(batches)
    return Look(
        step=standing.step,
        epoch=standing.position.epoch + (batch > 0),
        num_epochs=config.train.epochs,
        batch=batch or num_batches,
        num_batches=num_batches,
        means=means,
        norm=norm,
        rate=rate,
        pairs_per_second=pace.pairs_per_second,
        seconds_left=(config.train.epochs * num_batches - standing.step) * pace.seconds_per_step,
    )


def _beginning(
    config: TrainConfig, model: Seq2Seq, dataset: Dataset, world: World, standing: Standing
) -> Beginning:
    return Beginning(
        system=config.system.name,
        num_parameters=sum(parameter.numel() for parameter in model.parameters()),
        vocabulary=len(dataset.subwords),
        num_pairs=config.data.pairs or len(dataset["train"]),
        num_epochs=config.train.epochs,
        device=str(world.device),
        num_processes=world.size,
        step=standing.step,
    )
