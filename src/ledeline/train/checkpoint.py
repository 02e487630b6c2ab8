"""Checkpoints: all that a run needs to continue exactly where it stopped.

A checkpoint is a folder named after its step, as `checkpoints/00001200`, with tensors in
safetensors files and the rest in `checkpoint.json`, which also has the size and checksum of each
file. Nothing is pickled, so reading one runs no code of whoever wrote it.

A folder with a step's name is always complete, whenever the program is killed: it is written under
a hidden name, flushed to the disk and renamed; before it is removed, it is hidden again.
"""

import json
import os
import re
import zlib
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, NamedTuple

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor

from ledeline.core.atomic import (
    exclusive_lock,
    explain_full_disk,
    fsync,
    hidden_path,
    make_folder,
    remove_path,
    restore_previous,
    staging_folder,
)
from ledeline.core.errors import CheckpointError
from ledeline.core.manifest import checksum_matches, with_checksum

FORMAT: Final = "ledeline-checkpoint"
VERSION: Final = 2
READABLE: Final = (1, 2)  # version 1 is that of ledeline 0.1.0, which had Adam alone
MANIFEST: Final = "checkpoint.json"

_BLOCK_SIZE: Final = 2**20  # bytes
_STEP_NAME: Final = re.compile(r"[0-9]{8}|[1-9][0-9]{8,}")
_LEFT_OVER: Final = re.compile(rf"\.({_STEP_NAME.pattern})\.(partial|old|removed)")


class Checkpoint(NamedTuple):
    """A checkpoint whose files were checked."""

    folder: Path
    step: int
    state: dict[str, Any]
    files: frozenset[str]  # those that were checked; others in the folder are not read

    def tensors(self, name: str) -> dict[str, Tensor]:
        """The tensors that were saved under a name, copied into memory."""
        path = self.folder / f"{name}.safetensors"
        if path.name not in self.files:
            raise CheckpointError(f"{self.folder} has no {path.name}; name another checkpoint")
        try:  # safetensors maps the file into memory; a copy stays as it is
            return {key: tensor.clone() for key, tensor in load_file(path).items()}
        except (OSError, SafetensorError) as error:
            raise CheckpointError(f"{path} cannot be read: {error}") from None


def _write_nothing(_: Path) -> None:
    """Write no further files."""


class Checkpoints:
    """The checkpoints of a run. One process writes them; any number may read them."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def steps(self) -> list[int]:
        """The steps that have a checkpoint, ascending; their files are not checked."""
        if not self._folder.is_dir():
            return []
        try:
            names = [path.name for path in self._folder.iterdir() if path.is_dir()]
        except OSError as error:
            raise CheckpointError(f"{self._folder} cannot be read: {error.strerror}") from None
        replaced = [
            left[1] for name in names if (left := _LEFT_OVER.fullmatch(name)) and left[2] == "old"
        ]
        return sorted({int(name) for name in [*names, *replaced] if _STEP_NAME.fullmatch(name)})

    # --- writing ------------------------------------------------------------------------------

    def save(
        self,
        step: int,
        tensors: Mapping[str, Mapping[str, Tensor]],
        state: Mapping[str, Any],
        also: Callable[[Path], None] = _write_nothing,
    ) -> Path:
        """Write the checkpoint of a step, and replace any that is there; returns its folder.

        Each name in `tensors` becomes a file. `state` is JSON: keys are strings, tuples are read
        back as lists, numbers exactly; NaN and infinity are refused. `also` writes further files
        into the folder.
        """
        if step < 0:
            raise ValueError(f"impossible checkpoint: step {step}")
        output = self._folder / _name(step)
        as_read = json.loads(json.dumps(dict(state), allow_nan=False))
        with _disk_errors(output, "saved"):
            make_folder(self._folder)
            with exclusive_lock(self._folder, CheckpointError):
                self._repair()
                with staging_folder(output) as folder:
                    for name, group in tensors.items():
                        _write_tensors(folder / f"{name}.safetensors", group)
                    also(folder)
                    _write_manifest(folder, step, as_read)
        return output

    def keep(self, steps: Collection[int]) -> None:
        """Remove all other checkpoints, the oldest first."""
        if not self._folder.is_dir():
            return
        with _disk_errors(self._folder, "cleared"), exclusive_lock(self._folder, CheckpointError):
            self._repair()
            for step in self.steps():
                if step not in steps:
                    folder = self._folder / _name(step)
                    removed = folder.rename(hidden_path(folder, "removed"))
                    fsync(self._folder)
                    remove_path(removed)

    def _repair(self) -> None:
        """Restore or remove what a killed run left behind; the caller holds the lock."""
        for path in list(self._folder.iterdir()):
            if left := _LEFT_OVER.fullmatch(path.name):
                restore_previous(self._folder / left[1])
                remove_path(path)

    # --- reading ------------------------------------------------------------------------------

    def open(self, step: int) -> Checkpoint:
        """The checkpoint of a step; the checksums of all its files are compared."""
        folder = self._path(step)
        if not folder.is_dir():
            there = ", ".join(map(str, self.steps())) or "none"
            raise CheckpointError(f"{folder} is not there; there are checkpoints of steps: {there}")
        try:
            return _checked(folder, step)
        except _Damaged as reason:
            raise CheckpointError(
                f"{folder} cannot be used: {reason}; name another checkpoint"
            ) from None

    def newest(
        self, why_not: Callable[[Checkpoint], str | None], notify: Callable[[str], None]
    ) -> Checkpoint | None:
        """The newest undamaged checkpoint of the run, or None if there are no checkpoints at all.

        `why_not` gives the reason why a checkpoint does not belong to the run, or None. `notify`
        gets a sentence about each that is not used.
        """
        steps = self.steps()
        for step in reversed(steps):
            folder = self._path(step)
            try:
                checkpoint = _checked(folder, step)
                reason = why_not(checkpoint)
                if reason is None:
                    return checkpoint
            except _Damaged as unsound:
                reason = str(unsound)
            notify(f"{folder} is not used: {reason}")
        if steps:
            raise CheckpointError(
                f"{self._folder} has checkpoints, but none of them can be used; name another run "
                "folder, or remove its checkpoints to start from the beginning"
            )
        return None

    def _path(self, step: int) -> Path:
        """Where a step's checkpoint is: hidden, if the run was killed while it replaced it."""
        folder = self._folder / _name(step)
        old = hidden_path(folder, "old")
        return old if old.is_dir() and not folder.exists() else folder


def _name(step: int) -> str:
    return f"{step:08d}"


# --- the files --------------------------------------------------------------------------------


def _write_tensors(path: Path, tensors: Mapping[str, Tensor]) -> None:
    copies = {
        name: tensor.detach().to("cpu", copy=True, memory_format=torch.contiguous_format)
        for name, tensor in tensors.items()
    }  # safetensors saves no two tensors that share memory
    save_file(copies, path)
    path.chmod(path.parent.stat().st_mode & 0o666)  # safetensors lets only the owner read it


def _write_manifest(folder: Path, step: int, state: dict[str, Any]) -> None:
    paths = sorted(path for path in folder.rglob("*") if path.is_file())
    manifest = {
        "format": FORMAT,
        "version": VERSION,
        "step": step,
        "state": state,
        "files": {path.relative_to(folder).as_posix(): _size_and_checksum(path) for path in paths},
    }
    with (folder / MANIFEST).open("x", encoding="utf-8") as file:
        json.dump(with_checksum(manifest), file)


def _size_and_checksum(path: Path) -> dict[str, int]:
    size = checksum = 0
    with path.open("rb") as file:
        while block := file.read(_BLOCK_SIZE):
            size, checksum = size + len(block), zlib.crc32(block, checksum)
    return {"bytes": size, "crc32": checksum}


# --- checking ---------------------------------------------------------------------------------


class _Damaged(Exception):
    """Why a checkpoint cannot be used; whoever catches it adds the folder."""


def _checked(folder: Path, step: int) -> Checkpoint:
    manifest = _read_manifest(folder)
    if manifest["step"] != step:
        raise _Damaged(f"it is the checkpoint of step {manifest['step']} under another name")
    for name, about in manifest["files"].items():
        _check_file(folder / name, name, about)
    return Checkpoint(folder, step, manifest["state"], frozenset(manifest["files"]))


def _read_manifest(folder: Path) -> dict[str, Any]:
    try:
        manifest = json.loads((folder / MANIFEST).read_bytes())
    except FileNotFoundError:
        raise _Damaged(f"it has no {MANIFEST}, so it is not a checkpoint of ledeline") from None
    except OSError as error:
        raise _Damaged(f"{MANIFEST}: {error.strerror}") from None
    except ValueError:
        raise _Damaged(f"{MANIFEST} is damaged") from None
    if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
        raise _Damaged(f"{MANIFEST} does not describe a checkpoint of ledeline")
    _check_version(manifest.get("version", 0))
    if not checksum_matches(manifest):
        raise _Damaged(f"{MANIFEST} was changed after it was written")
    return manifest


def _check_version(version: Any) -> None:
    if type(version) is not int:
        raise _Damaged(f"{MANIFEST} was changed after it was written")
    if version not in READABLE:
        age = "an older" if version < VERSION else "a newer"
        raise _Damaged(
            f"it was written by {age} ledeline, in format version {version}, and this ledeline "
            f"reads versions {READABLE[0]} to {READABLE[-1]}"
        )


def _check_file(path: Path, name: str, about: Any) -> None:
    try:
        size = path.stat().st_size
        if size != about["bytes"]:
            raise _Damaged(f"{name} has {size} bytes instead of {about['bytes']}")
        if _size_and_checksum(path) != about:
            raise _Damaged(f"{name} was changed after it was written")
    except OSError as error:
        raise _Damaged(f"{name}: {error.strerror}") from None


# --- errors of the disk ---------------------------------------------------------------------


@contextmanager
def _disk_errors(place: Path, doing: str) -> Iterator[None]:
    """Turn any error of the disk into one sentence."""
    full = CheckpointError(f"{place}: the disk is full; make room and continue with --resume")
    try:
        with explain_full_disk(full), _os_errors():
            yield
    except OSError as error:
        where = f" ({error.filename})" if error.filename else ""
        raise CheckpointError(
            f"{place} cannot be {doing}: {error.strerror or error}{where}; mend that and continue "
            "with --resume"
        ) from error


@contextmanager
def _os_errors() -> Iterator[None]:
    """Turn errors of safetensors into OSErrors; their number is in the text."""
    try:
        yield
    except SafetensorError as error:
        number = re.search(r"(?:os error|code:) (\d+)", str(error))
        if not number:
            raise OSError(str(error)) from None
        raise OSError(int(number[1]), os.strerror(int(number[1]))) from None
