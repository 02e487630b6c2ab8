"""A run folder: its configuration, its checkpoints, the best of them."""

import json
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import torch
from torch import Tensor, distributed

from ledeline.config.renames import new_name
from ledeline.config.section import flatten
from ledeline.config.toml import to_toml
from ledeline.core.atomic import (
    atomic_symlink,
    atomic_write,
    exclusive_lock,
    make_folder,
    remove_temporary_files,
)
from ledeline.core.errors import CheckpointError, ModelError, TrainingError
from ledeline.core.provenance import circumstances
from ledeline.data.dataset import Dataset
from ledeline.model.addons import ADDONS
from ledeline.model.format.description import BEST, WEIGHTS
from ledeline.model.format.model_folder import load_model, write_description
from ledeline.model.system import System
from ledeline.model.system_config import SystemConfig
from ledeline.train.checkpoint import Checkpoint, Checkpoints
from ledeline.train.optimizers import OptimizerConfig, load_optimizer_state, optimizer_state
from ledeline.train.processes import World
from ledeline.train.state import TrainState
from ledeline.train.train_config import RENAMED, TrainConfig, load_train_config

CONFIG: Final = "config.toml"
ABOUT: Final = "run.json"
CHECKPOINTS: Final = "checkpoints"
OPTIMIZER: Final = "optimizer"  # .safetensors, beside the weights

# What a run keeps to its end beside what its model is: other values make other batches.
FIXED: Final = (
    "optimizer.name",
    "data.pairs",
    "train.batch_unit",
    "train.batch_size",
    "train.equal_lengths",
    "train.similar_headlines",
    "train.seed",
    "train.start_from",
)
# What older checkpoints do not say, since there was nothing else.
_NOT_SAID: Final = {
    "system.name": "encdec",
    "optimizer.name": "adam",
    "train.batch_unit": "pairs",
    "train.similar_headlines": False,
    **{f"{name}.enabled": False for name in ADDONS},
}

Notify = Callable[[str], None]


class RunFolder:
    """The folder of one run, as its leading process has it."""

    def __init__(self, folder: Path, config: TrainConfig, dataset: Dataset) -> None:
        self.folder, self.config, self.dataset = folder, config, dataset
        self.checkpoints = Checkpoints(folder / CHECKPOINTS)
        self._writer = ThreadPoolExecutor(1)
        self._writing: Future[None] | None = None

    @classmethod
    @contextmanager
    def opened(
        cls, folder: Path, config: TrainConfig, dataset: Dataset, resume: bool, notify: Notify
    ) -> Iterator["RunFolder"]:
        """Make a folder, or continue one; nobody else may write to it meanwhile."""
        make_folder(folder.parent)
        with exclusive_lock(folder, TrainingError):
            if folder.exists() and any(folder.iterdir()) and not resume:
                raise TrainingError(
                    f"{folder} already exists; use --resume to continue it, or name another "
                    "folder with --run"
                )
            run = cls(folder, config, dataset)
            run._write_description(notify)
            with run._writer:
                try:
                    yield run
                finally:
                    run.wait_until_written()

    def _write_description(self, notify: Notify) -> None:
        """Write the configuration and what the run ran on; refuse one that may not change so."""
        make_folder(self.folder)
        remove_temporary_files(self.folder)
        if (self.folder / CONFIG).exists():
            self._compare_with(load_train_config(self.folder / CONFIG, quiet=True), notify)
        with atomic_write(self.folder / CONFIG) as part:
            part.write_text(to_toml(self.config), encoding="utf-8")
        if not (self.folder / ABOUT).exists():
            about = {"dataset": self.dataset.checksum, **circumstances()}
            with atomic_write(self.folder / ABOUT) as part:
                part.write_text(json.dumps(about, indent=2) + "\n", encoding="utf-8")

    def _compare_with(self, before: TrainConfig, notify: Notify) -> None:
        """Refuse other values of fixed keys; say which others changed."""
        fixed = fixed_values(before) | fixed_values(self.config)
        for key, old, new in changes(before, self.config):
            if key in fixed:
                raise TrainingError(
                    f"{self.folder} was started with {key} = {old}, which cannot change to {new}; "
                    "give the same value, or name another folder with --run"
                )
            if key != "data.dataset":  # it may have moved; its checksum must be the same
                notify(f"{key} was {old} and is {new} from here on")

    # --- checkpoints -----------------------------------------------------------------------------

    def save(
        self, train_state: TrainState, model: System, optimizer: torch.optim.Optimizer
    ) -> None:
        """Write a checkpoint, point `best` to the best one, keep that and the newest.

        It is written in the background. An error there is raised by the next call, or by
        `wait_until_written`.
        """
        self.wait_until_written()
        tensors = {
            WEIGHTS: _copied(model.state_dict()),
            OPTIMIZER: _copied(optimizer_state(self.config.optimizer, model, optimizer)),
        }
        self._writing = self._writer.submit(self._write, train_state, tensors)

    def wait_until_written(self) -> None:
        """Wait until the last checkpoint is on the disk."""
        if self._writing is not None:
            writing, self._writing = self._writing, None
            writing.result()

    def _write(self, train_state: TrainState, tensors: dict[str, dict[str, Tensor]]) -> None:
        state = {"train_state": train_state.to_json(), "belongs_to": self._identity()}
        self.checkpoints.save(train_state.step, tensors, state, self._write_model_files)
        self.clean_up(train_state)

    def clean_up(self, train_state: TrainState) -> None:
        """Point `best` to the best checkpoint; keep that, the last two and the last epochs'."""
        steps = self.checkpoints.steps()
        if train_state.best_step in steps:
            best = self.folder / CHECKPOINTS / f"{train_state.best_step:08}"
            atomic_symlink(self.folder / BEST, best)
        ends = [step for step in steps if step % train_state.steps_per_epoch == 0]
        last = ends[-self.config.run.keep_epochs :] if self.config.run.keep_epochs else []
        self.checkpoints.keep({*steps[-2:], *last, train_state.best_step})

    def newest_checkpoint(self, notify: Notify) -> Checkpoint | None:
        """The newest sound checkpoint of this run."""
        return self.checkpoints.newest(self._why_foreign, notify)

    def _write_model_files(self, folder: Path) -> None:
        """What makes a checkpoint a model that can be used on its own."""
        write_description(folder, self.config.model, self.dataset.tokenizer)

    def _identity(self) -> dict[str, Any]:
        """What a checkpoint must have in common with this run."""
        fixed = fixed_values(self.config)
        plain = {k: str(one) if isinstance(one, Path) else one for k, one in fixed.items()}
        return plain | {"dataset": self.dataset.checksum}

    def _why_foreign(self, checkpoint: Checkpoint) -> str | None:
        """Why a checkpoint does not belong to this run; None: it does."""
        there = _identity_in(checkpoint)
        if there is None:
            return "it does not say which run it belongs to"
        for key, value in self._identity().items():
            if there.get(key) != value:
                what = "another dataset" if key == "dataset" else f"{key} = {there.get(key)}"
                return f"it belongs to a run with {what}"
        return None


# --- which keys of a configuration may change -----------------------------------------------------


def model_values(config: SystemConfig) -> dict[str, Any]:
    """Every dotted key that decides what the weights are, with its value."""
    sections = {"system": config.system, **config.addons}
    free = {f"{name}.{key}" for name, part in sections.items() for key in part.free}
    return {key: value for key, value in flatten(config).items() if key not in free}


def fixed_values(config: TrainConfig) -> dict[str, Any]:
    """Every dotted key that a run keeps to its end, with its value."""
    others = {key: value for key, value in flatten(config).items() if key in FIXED}
    return model_values(config.model) | others


def changes(before: TrainConfig, now: TrainConfig) -> list[tuple[str, Any, Any]]:
    """The keys that differ, with both values."""
    return _differences(flatten(before), flatten(now))


def _differences(one: Mapping[str, Any], other: Mapping[str, Any]) -> list[tuple[str, Any, Any]]:
    return [
        (key, one.get(key), other.get(key))
        for key in {**one, **other}
        if one.get(key) != other.get(key)
    ]


# --- a model and its optimizer, from a checkpoint and to the other processes ---------------------


def _copied(tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    """Copies on the CPU, which later steps do not change."""
    return {name: one.detach().to("cpu", copy=True) for name, one in tensors.items()}


def _identity_in(checkpoint: Checkpoint) -> dict[str, Any] | None:
    """What a checkpoint says of its run, with today's names of keys."""
    there = checkpoint.state.get("belongs_to", checkpoint.state.get("belongs"))  # 0.1.0: belongs
    if not isinstance(there, dict):
        return None
    return _NOT_SAID | {new_name(key, RENAMED): value for key, value in there.items()}


def restore(
    checkpoint: Checkpoint,
    config: OptimizerConfig,
    model: System,
    optimizer: torch.optim.Optimizer,
) -> TrainState:
    """Load the weights and the optimizer's state of a checkpoint; gives the state of the run."""
    state = checkpoint.state
    try:
        model.load_state_dict(checkpoint.tensors(WEIGHTS))
        saved = checkpoint.tensors(OPTIMIZER)
        load_optimizer_state(optimizer_state(config, model, optimizer), saved, checkpoint.step)
        return TrainState.from_json(state.get("train_state") or state["standing"])  # as in 0.1.0
    except (RuntimeError, KeyError) as error:
        raise CheckpointError(
            f"{checkpoint.folder} does not hold what this model and optimizer need: {error}"
        ) from None


def has_checkpoint(folder: Path) -> bool:
    """Whether a run folder has a checkpoint to resume from."""
    return bool(Checkpoints(folder / CHECKPOINTS).steps())


def load_first_weights(folder: Path, model: System, dataset: Dataset) -> None:
    """Give a model the weights of another one with the same sizes and sub-words.

    It may have add-ons that the other one lacks; their own weights stay at their first values.
    """
    there = load_model(folder)
    if there.tokenizer != dataset.tokenizer:
        profile = there.tokenizer.profile.name
        raise ModelError(
            f"{folder} has other sub-words or another text profile than {dataset.folder}; prepare "
            f"the dataset with --subword.reuse={folder} and --text.profile={profile}"
        )
    added = model.config.addons.keys() - there.model.config.addons.keys()
    for key, found, wanted in _differences(
        model_values(there.model.config), model_values(model.config)
    ):
        if key.partition(".")[0] in added:
            continue
        raise ModelError(f"{folder} has {key} = {found}, but the configuration has {wanted}")
    model.load_state_dict(model.state_dict() | there.model.state_dict())


def share(
    train_state: TrainState,
    config: OptimizerConfig,
    model: System,
    optimizer: torch.optim.Optimizer,
    world: World,
) -> TrainState:
    """Give every process the leading one's state, so that only that one needs the run folder.

    DistributedDataParallel shares the weights.
    """
    if world.control is None:
        return train_state
    box: list[Any] = [train_state.to_json()]
    distributed.broadcast_object_list(box, src=0, group=world.control)
    shared = TrainState.from_json(box[0])
    tensors = optimizer_state(config, model, optimizer) if shared.step else {}
    for tensor in tensors.values():
        on_cpu = tensor.cpu()
        distributed.broadcast(on_cpu, src=0, group=world.control)
        tensor.copy_(on_cpu)
    return shared
