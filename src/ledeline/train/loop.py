"""The training loop: one function that reads top to bottom."""

import math
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path

import torch
from torch import nn

from ledeline.config import TrainConfig
from ledeline.dataset import Batch, Batches, Dataset
from ledeline.errors import DatasetError, TrainingError
from ledeline.model.dropout import WHOLE, Share, seed
from ledeline.model.seq2seq import Losses, Seq2Seq
from ledeline.subword import UNK
from ledeline.train.clock import Clock
from ledeline.train.journal import Journal, circumstances
from ledeline.train.processes import World, joined
from ledeline.train.run import Run, restore, share, values
from ledeline.train.standing import Standing, learning_rate
from ledeline.train.stop import Stop
from ledeline.train.tally import Means, Tally
from ledeline.train.validation import Validation, validation_loss, write_headlines
from ledeline.train.watch import Beginning, Look, Nobody, Watch

GPU_STEPS_A_LOOK = 10  # a look waits for the GPU; on a CPU it costs nothing


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
        stop = stack.enter_context(Stop(max_minutes).listening())
        world = stack.enter_context(joined(config.run.device))
        watch = watch if watch is not None and world.leads else Nobody()

        # The data, the model, its optimizer, and where the run stands.
        dataset = Dataset(config.data.dataset)
        world.agree(dataset.checksum, f"the dataset {config.data.dataset}")
        rest = {key: value for key, value in values(config).items() if key != "data.dataset"}
        world.agree(str(rest), "the configuration")
        batches = _batches(dataset, config, world)
        model = Seq2Seq(config.system, len(dataset.subwords), config.train.seed).to(world.device)
        optimizer = torch.optim.Adam(model.parameters(), fused=True)
        standing, run = Standing(), None
        if world.leads:
            run = stack.enter_context(Run.opened(folder, config, dataset, resume, watch.says))
            if checkpoint := run.newest(watch.says):
                restore(checkpoint, model, optimizer)
                standing = Standing.from_json(checkpoint.state["standing"]).judged(config.train)
                run.keep(standing)
        standing = share(standing, model, optimizer, world)
        wrapped = world.wrap(model)
        journal = stack.enter_context(Journal(folder if world.leads else None, standing.step))
        journal.write("start", standing.step, processes=world.size, **circumstances())
        watch.begins(_beginning(config, model, dataset, world, standing))

        # The steps.
        steps_a_look = 1 if world.device.type == "cpu" else GPU_STEPS_A_LOOK
        tally, clock, stops = Tally(), Clock(), False
        for batch, behind in batches.after(standing.position):
            if standing.finished or stops:
                break
            rate = learning_rate(config.train, standing.position.epoch)
            for group in optimizer.param_groups:
                group["lr"] = rate
            seed(config.train.seed, standing.step)
            model.train()
            losses, weight = _forward(wrapped, model, batch, world, config)
            torch.autograd.backward(losses.total().sum() * weight)
            norm = nn.utils.clip_grad_norm_(model.parameters(), config.train.clip)
            optimizer.step()
            optimizer.zero_grad()
            tally.add(losses, int((batch.headline_lengths + 1).sum()), len(batch.sources))
            clock.step(batch.num_pairs)
            standing = standing.stepped(behind)

            # A look: what the steps cost, whether all is well, whether to stop.
            ends_epoch = behind.batch == 0
            reports = ends_epoch or standing.step % config.run.report_every == 0
            saves = ends_epoch or standing.step % config.run.checkpoint_every == 0
            if not (reports or saves or standing.step % steps_a_look == 0):
                continue
            means = tally.means(world)
            _refuse_not_finite(means, float(norm), standing, config, folder)
            stops = world.any(stop.wanted)
            look = _look(config, batches, standing, behind.batch, means, float(norm), rate, clock)
            watch.looks(replace(look, seconds_left=stop.at_most(look.seconds_left)))
            if reports:
                journal.write("train", standing.step, **look.figures)
                tally = Tally()

            # The end of an epoch, and what is kept of the run.
            if ends_epoch:
                validation = _validate(model, dataset, config, world, standing, watch)
                _refuse_not_finite(validation.means, 0.0, standing, config, folder)
                standing = standing.validated(validation.means.per_token, config.train)
                best = standing.best_step == standing.step
                journal.write("valid", standing.step, **validation.figures, best=best)
                watch.validates(replace(validation, best=best))
            if run is not None and (saves or stops):
                run.save(standing, model, optimizer)
            if ends_epoch or saves:
                clock.start()

        stopped = stop.reason if stops and not standing.finished else ""
        journal.write("stop", standing.step, reason=stopped or standing.finished)
        return Outcome(folder, standing, stopped, stop.signal if stopped else None)


# --- what the loop is made of ---------------------------------------------------------------------


def _batches(dataset: Dataset, config: TrainConfig, world: World) -> Batches:
    for split in ("train", "valid"):
        if not len(dataset[split]):
            raise DatasetError(f"{dataset.folder} has no pairs in its split {split}")
    return Batches(
        dataset["train"],
        size=config.train.batch_size,
        seed=config.train.seed,
        equal_lengths=config.train.equal_lengths,
        rank=world.rank,
        world_size=world.size,
    )


_STAND_IN = Batch.of([([UNK], [])])


def _forward(
    wrapped: nn.Module, model: Seq2Seq, batch: Batch, world: World, config: TrainConfig
) -> tuple[Losses, float]:
    """The losses of this process's pairs, and what their sum weighs in the mean over all.

    Gradients are averaged over the processes, so each weighs its sum with their number. A process
    without a pair of a small batch goes along with a stand-in that weighs nothing.
    """
    has_pairs = len(batch.sources) > 0
    model.dropout.share = Share(world.rank, world.size, batch.num_pairs) if has_pairs else WHOLE
    bfloat16 = config.run.precision == "bfloat16" or (
        config.run.precision == "auto" and world.device.type == "cuda"
    )
    with torch.autocast(world.device.type, torch.bfloat16, enabled=bfloat16):
        losses: Losses = wrapped(model.pairs(batch if has_pairs else _STAND_IN))
    return losses, world.size / batch.num_pairs if has_pairs else 0.0


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
    means = validation_loss(model, dataset, config.train.batch_size, world, watch.progress)
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
    clock: Clock,
) -> Look:
    pairs_per_second, seconds_per_step = clock.read()
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
        pairs_per_second=pairs_per_second,
        seconds_left=(config.train.epochs * num_batches - standing.step) * seconds_per_step,
    )


def _beginning(
    config: TrainConfig, model: Seq2Seq, dataset: Dataset, world: World, standing: Standing
) -> Beginning:
    return Beginning(
        system=config.system.name,
        num_parameters=sum(parameter.numel() for parameter in model.parameters()),
        vocabulary=len(dataset.subwords),
        num_pairs=len(dataset["train"]),
        num_epochs=config.train.epochs,
        device=str(world.device),
        num_processes=world.size,
        step=standing.step,
    )
