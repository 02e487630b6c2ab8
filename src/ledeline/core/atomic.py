"""Atomic writes: a file or folder appears complete or not at all, even if the program is killed."""

import errno
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from ledeline.core.errors import CorpusError, DatasetError, LedelineError

_PART = ".part-"  # the names of files that are not complete yet begin with this


@contextmanager
def atomic_folder(output: Path, *, replace: str | None = None) -> Iterator[Path]:
    """Give a hidden folder to write into; it becomes `output` when the block ends without an error.

    If the block fails or the program is killed, `output` stays as it was, and the next run removes
    what was left behind. Two processes cannot write the same output at the same time.

    A folder that is not empty is replaced only if it contains the file `replace`, which shows that
    it was written by this program. If `output` is a link, its target is written.
    """
    output = output.resolve()
    make_folder(output.parent)
    with exclusive_lock(output, DatasetError):
        restore_previous(output)
        _check_output_is_free(output, replace)
        full = DatasetError(f"{output}: the disk is full; make room and run again")
        with explain_full_disk(full), staging_folder(output) as partial:
            yield partial
            _check_output_is_free(output, replace)


@contextmanager
def atomic_write(path: Path) -> Iterator[Path]:
    """Give a temporary path to write to; it replaces `path` once all of it is on the disk.

    If `path` is a link, its target is written. A folder, a pipe or a device is refused.
    """
    path = path.resolve()
    if path.exists() and not path.is_file():
        kind = "a folder" if path.is_dir() else "a pipe or a device"
        raise CorpusError(f"{path} is {kind}; name a file to write to")
    part = path.with_name(f"{_PART}{os.getpid()}-{path.name}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        yield part
        fsync(part)
        part.replace(path)
        fsync(path.parent)
    except OSError as error:
        raise CorpusError(f"{path}: cannot be written: {error.strerror or error}") from error
    finally:
        with suppress(OSError):
            part.unlink()


def remove_temporary_files(folder: Path) -> None:
    """Remove temporary files that a killed process left in a folder that nobody else writes to."""
    for pattern in (f"{_PART}*", ".*.new"):
        for path in folder.glob(pattern):
            path.unlink()


def atomic_symlink(link: Path, target: Path) -> None:
    """Make a relative link to `target`; an existing link is replaced in one step."""
    place = target.parent.resolve() / target.name
    new = hidden_path(link, "new")
    remove_path(new)
    new.symlink_to(os.path.relpath(place, link.parent.resolve()))
    new.replace(link)
    fsync(link.parent)


def _check_output_is_free(output: Path, replace: str | None) -> None:
    if output.exists() and not output.is_dir():
        raise DatasetError(f"{output} is a file; name a folder to write to")
    if not output.exists() or not any(output.iterdir()):
        return
    if replace is None:
        raise DatasetError(
            f"{output} already exists; name another output, or replace it with "
            "--dataset.overwrite=true"
        )
    if not (output / replace).is_file():
        raise DatasetError(
            f"{output} is not overwritten, because it has no {replace} and so was not written by "
            "this command; name another output"
        )


# --- parts ----------------------------------------------------------------------------------------


@contextmanager
def exclusive_lock(output: Path, kind: type[LedelineError]) -> Iterator[None]:
    """Be the only process that writes `output`; raise an error of `kind` if another one does."""
    path = hidden_path(output, "lock")
    with path.open("w") as file:
        try:
            _lock(file)
            if not os.fstat(file.fileno()).st_nlink:
                raise BlockingIOError  # its owner removed it after it was opened here
        except BlockingIOError:
            raise kind(f"another run is writing {output}; wait until it ends") from None
        try:
            yield
        finally:
            with suppress(PermissionError):  # of Windows, where an open file stays
                path.unlink()


def _lock(file: IO[str]) -> None:
    """Lock a file until it is closed; a BlockingIOError if somebody else has."""
    if sys.platform == "win32":
        import msvcrt

        try:
            msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
        except OSError:
            raise BlockingIOError from None
    else:
        import fcntl

        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)


@contextmanager
def staging_folder(output: Path) -> Iterator[Path]:
    """Give a hidden folder that replaces `output` when the block ends without an error.

    The caller holds the lock. This takes two renames; if the program is killed between them, the
    old `output` is left under a hidden name, and `restore_previous` puts it back.
    """
    partial = hidden_path(output, "partial")
    remove_path(partial)
    try:
        partial.mkdir()
        yield partial
        _publish(partial, output, hidden_path(output, "old"))
    finally:
        remove_path(partial)


def restore_previous(output: Path) -> None:
    """Put back the old `output` of a process that was killed while it replaced it."""
    old = hidden_path(output, "old")
    if old.exists() and not output.exists():
        old.rename(output)


@contextmanager
def explain_full_disk(instead: LedelineError) -> Iterator[None]:
    """Raise the error `instead` if the disk is full, or the quota of the user."""
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise instead from None
        raise


def hidden_path(output: Path, kind: str) -> Path:
    """A hidden name beside `output`."""
    return output.with_name(f".{output.name}.{kind}")


def make_folder(folder: Path) -> None:
    """Make a folder and its parents, and wait until they are on the disk."""
    if not folder.is_dir():
        make_folder(folder.parent)
        folder.mkdir(exist_ok=True)
        fsync(folder.parent)


def fsync(path: Path) -> None:
    """Wait until a file or a folder is on the disk; Windows does so with files alone."""
    if sys.platform == "win32" and path.is_dir():
        return
    descriptor = os.open(path, os.O_RDWR if sys.platform == "win32" else os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def remove_path(path: Path) -> None:
    """Remove a folder with its contents, a file or a link, if it exists."""
    if path.is_dir() and not path.is_symlink():
        import shutil  # takes its time

        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def _publish(partial: Path, output: Path, old: Path) -> None:
    """Write everything to the disk, then move the folder to its place."""
    for path in [*partial.rglob("*"), partial]:
        fsync(path)
    remove_path(old)
    if output.exists() or output.is_symlink():
        output.rename(old)
    partial.rename(output)
    fsync(output.parent)
    remove_path(old)
