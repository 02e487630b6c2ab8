"""A run folder: its configuration, its checkpoints, the best of them."""

import json
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import torch
from torch import Tensor, distributed

from ledeline.config.renames import new_name
from ledeline.config.section import flatten
from ledeline.config.toml import load, to_toml
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
from ledeline.model.config import SystemConfig
from ledeline.model.format.folder import BEST, WEIGHTS, describe, load_model
from ledeline.model.system import System
from ledeline.train.checkpoint import Checkpoint, Checkpoints
from ledeline.train.config import RENAMED, TrainConfig
from ledeline.train.processes import World
from ledeline.train.state import TrainState

CONFIG: Final = "config.toml"
ABOUT: Final = "run.json"
CHECKPOINTS: Final = "checkpoints"

# What a run keeps to its end beside the shape of its model: other values make other batches.
FIXED: Final = (
    "optimizer.name",
    "data.pairs",
    "train.batch_size",
    "train.equal_lengths",
    "train.seed",
    "train.start_from",
)

Note = Callable[[str], None]


class Run:
    """The folder of one run, as its leading process has it."""

    def __init__(self, folder: Path, config: TrainConfig, dataset: Dataset) -> None:
        self.folder, self.config, self.dataset = folder, config, dataset
        self.checkpoints = Checkpoints(folder / CHECKPOINTS)
        self._writer = ThreadPoolExecutor(1)
        self._writing: Future[None] | None = None

    @classmethod
    @contextmanager
    def opened(
        cls, folder: Path, config: TrainConfig, dataset: Dataset, resume: bool, note: Note
    ) -> Iterator["Run"]:
        """Begin a folder, or go on with one; nobody else may write to it meanwhile."""
        make_folder(folder.parent)
        with exclusive_lock(folder, TrainingError):
            if folder.exists() and any(folder.iterdir()) and not resume:
                raise TrainingError(
                    f"{folder} is there already; say --resume to go on with it, or name another "
                    "folder with --run"
                )
            run = cls(folder, config, dataset)
            run._settle(note)
            with run._writer:
                try:
                    yield run
                finally:
                    run.finish()

    def _settle(self, note: Note) -> None:
        """Refuse a changed run, note what may change, write what was resolved."""
        make_folder(self.folder)
        remove_temporary_files(self.folder)
        if (self.folder / CONFIG).exists():
            before = load(TrainConfig, self.folder / CONFIG, renamed=RENAMED, quiet=True)
            fixed = fixed_of(before) | fixed_of(self.config)
            for key, old, new in changes(before, self.config):
                if key in fixed:
                    raise TrainingError(
                        f"{self.folder} was begun with {key} = {old}, which cannot become {new} "
                        "on the way; give the same, or name another folder with --run"
                    )
                if key != "data.dataset":  # it may have moved; its checksum must be the same
                    note(f"{key} was {old} and is {new} from here on")
        with atomic_write(self.folder / CONFIG) as part:
            part.write_text(to_toml(self.config), encoding="utf-8")
        if not (self.folder / ABOUT).exists():
            about = {"dataset": self.dataset.checksum, **circumstances()}
            with atomic_write(self.folder / ABOUT) as part:
                part.write_text(json.dumps(about, indent=2) + "\n", encoding="utf-8")

    # --- checkpoints -----------------------------------------------------------------------------

    def save(
        self, train_state: TrainState, model: System, optimizer: torch.optim.Optimizer
    ) -> None:
        """Write a checkpoint, point `best` to the best one, keep that and the newest.

        It is written in the background; what goes wrong there is raised by the next call, or by
        `finish`.
        """
        self.finish()
        tensors = {
            WEIGHTS: _copied(model.state_dict()),
            "optimizer": _copied(moments(model, optimizer)),
        }
        self._writing = self._writer.submit(self._write, train_state, tensors)

    def finish(self) -> None:
        """Wait until the last checkpoint is written."""
        if self._writing is not None:
            writing, self._writing = self._writing, None
            writing.result()

    def _write(self, train_state: TrainState, tensors: dict[str, dict[str, Tensor]]) -> None:
        state = {"standing": train_state.to_json(), "belongs": self._belongs()}
        self.checkpoints.save(train_state.step, tensors, state, self._write_model_files)
        self.keep(train_state)

    def keep(self, train_state: TrainState) -> None:
        """Point `best` to the best checkpoint; keep that, the last two and the last epochs'."""
        steps = self.checkpoints.steps()
        if train_state.best_step in steps:
            atomic_symlink(
                self.folder / BEST, self.folder / CHECKPOINTS / f"{train_state.best_step:08}"
            )
        ends = [step for step in steps if step % train_state.steps_an_epoch == 0]
        last = ends[-self.config.run.keep_epochs :] if self.config.run.keep_epochs else []
        self.checkpoints.keep({*steps[-2:], *last, train_state.best_step})

    def newest(self, note: Note) -> Checkpoint | None:
        """The newest sound checkpoint of this run."""
        return self.checkpoints.newest(self._misfit, note)

    def _write_model_files(self, folder: Path) -> None:
        """What makes a checkpoint a model that can be used on its own."""
        describe(folder, self.config.model, self.dataset.tokenizer)

    def _belongs(self) -> dict[str, Any]:
        """What tells this run's checkpoints from others'."""
        named = fixed_of(self.config)
        fixed = {k: str(one) if isinstance(one, Path) else one for k, one in named.items()}
        return fixed | {"dataset": self.dataset.checksum}

    def _misfit(self, checkpoint: Checkpoint) -> str | None:
        there = checkpoint.state.get("belongs")
        if not isinstance(there, dict):
            return "it does not say which run it belongs to"
        there = {new_name(key, RENAMED): value for key, value in there.items()}
        of_first_version = {"system.name": "encdec", "optimizer.name": "adam"}
        for key, value in self._belongs().items():
            if (found := there.get(key, of_first_version.get(key))) != value:
                what = "another dataset" if key == "dataset" else f"{key} = {found}"
                return f"it belongs to a run with {what}"
        return None


def shape_of(config: SystemConfig) -> dict[str, Any]:
    """Every dotted key that the shape of a model depends on, with its value."""
    sections = {"system": config.system, **config.addons}
    free = {f"{name}.{key}" for name, part in sections.items() for key in part.free}
    return {key: value for key, value in flatten(config).items() if key not in free}


def fixed_of(config: TrainConfig) -> dict[str, Any]:
    """Every dotted key that a run keeps to its end, with its value."""
    return shape_of(config.model) | {
        key: value for key, value in flatten(config).items() if key in FIXED
    }


def changes(before: TrainConfig, now: TrainConfig) -> list[tuple[str, Any, Any]]:
    """The keys that differ, with both values."""
    old, new = flatten(before), flatten(now)
    return [
        (key, old.get(key), new.get(key)) for key in {**old, **new} if old.get(key) != new.get(key)
    ]


# --- a model and its optimizer, out of a checkpoint and over to the other processes --------------

_MOMENTS: Final = ("exp_avg", "exp_avg_sq")


def moments(model: System, optimizer: torch.optim.Optimizer) -> dict[str, Tensor]:
    """Adam's two moments of each parameter, by name."""
    return {
        f"{name}.{kind}": optimizer.state[parameter][kind]
        for name, parameter in model.named_parameters()
        for kind in _MOMENTS
        if kind in optimizer.state[parameter]
    }


def _copied(tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    """As they are now, on the CPU: the steps go on meanwhile."""
    return {name: one.detach().to("cpu", copy=True) for name, one in tensors.items()}


def restore(checkpoint: Checkpoint, model: System, optimizer: torch.optim.Optimizer) -> None:
    """Put a checkpoint's weights and moments in their places."""
    try:
        model.load_state_dict(checkpoint.tensors(WEIGHTS))
        _set_moments(checkpoint.tensors("optimizer"), checkpoint.step, model, optimizer)
    except (RuntimeError, KeyError) as error:
        raise CheckpointError(
            f"{checkpoint.folder} does not hold the tensors of this model: {error}"
        ) from None


def begun(folder: Path) -> bool:
    """Whether a run folder has a checkpoint to go on from."""
    return bool(Checkpoints(folder / CHECKPOINTS).steps())


def start_from(folder: Path, model: System, dataset: Dataset) -> None:
    """Give a model the weights of another one that reads and writes the same."""
    there = load_model(folder)
    if there.tokenizer != dataset.tokenizer:
        profile = there.tokenizer.profile.name
        raise ModelError(
            f"{folder} has other sub-words or another text profile than {dataset.folder}; prepare "
            f"the dataset with --subword.reuse={folder} and --text.profile={profile}"
        )
    wanted, found = shape_of(model.config), shape_of(there.model.config)
    for key in {**wanted, **found}:
        if wanted.get(key) != found.get(key):
            raise ModelError(
                f"{folder} has {key} = {found.get(key)}, and {wanted.get(key)} is asked for"
            )
    model.load_state_dict(there.model.state_dict())


def _set_moments(
    tensors: dict[str, Tensor], step: int, model: System, optimizer: torch.optim.Optimizer
) -> None:
    for name, parameter in model.named_parameters():
        optimizer.state[parameter] = {
            "step": torch.tensor(float(step), device=parameter.device),
            **{kind: tensors[f"{name}.{kind}"].to(parameter.device) for kind in _MOMENTS},
        }


def share(
    train_state: TrainState, model: System, optimizer: torch.optim.Optimizer, world: World
) -> TrainState:
    """Give every process what the leading one has, so that only it needs the run folder.

    The weights are DistributedDataParallel's to share.
    """
    if world.control is None:
        return train_state
    box: list[Any] = [train_state.to_json()]
    distributed.broadcast_object_list(box, src=0, group=world.control)
    train_state = TrainState.from_json(box[0])
    if train_state.step:
        zeros = {
            f"{name}.{kind}": torch.zeros_like(parameter)
            for name, parameter in model.named_parameters()
            for kind in _MOMENTS
        }
        tensors = moments(model, optimizer) if world.leads else zeros
        for name, tensor in tensors.items():
            here = tensor.cpu()
            distributed.broadcast(here, src=0, group=world.control)
            tensors[name] = here
        _set_moments(tensors, train_state.step, model, optimizer)
    return train_state
