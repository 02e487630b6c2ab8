"""Files and folders that appear whole or not at all, whenever the program is killed."""

import errno
import fcntl
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from ledeline.errors import CorpusError, DatasetError


@contextmanager
def whole_folder(output: Path, *, replace: str | None = None) -> Iterator[Path]:
    """Give a hidden folder beside `output` to write into; when the block ends well, it is `output`.

    If the block fails, or the program is killed, `output` is as it was; what a killed run left
    behind is cleared by the next one. Two runs with the same output cannot be under way at once.

    A folder that has anything in it is replaced only if `replace` names a file it has, which shows
    that it is of the kind that is written here. An output that is a link is written where it leads.
    """
    output = output.resolve()
    output.parent.mkdir(parents=True, exist_ok=True)
    lock, partial, old = (
        output.parent / f".{output.name}.{kind}" for kind in ("lock", "partial", "old")
    )
    with _lock(lock, output):
        if old.exists() and not output.exists():
            old.rename(output)  # an earlier run was killed between its two renames
        _refuse_taken(output, replace)
        _remove(partial)
        partial.mkdir()
        try:
            yield partial
            _refuse_taken(output, replace)
            _settle(partial, output, old)
        except OSError as error:
            if error.errno in (errno.ENOSPC, errno.EDQUOT):
                raise DatasetError(f"{output}: the disk is full; make room and run again") from None
            raise
        finally:
            _remove(partial)


@contextmanager
def whole_file(path: Path) -> Iterator[Path]:
    """Give a name beside `path` to write to, which takes its place once all is on the disk."""
    part = path.with_name(f".part-{os.getpid()}-{path.name}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        yield part
        _flush(part)
        part.replace(path)
        _flush(path.parent)
    except OSError as error:
        raise CorpusError(f"{path}: cannot be written: {error.strerror or error}") from error
    finally:
        with suppress(OSError):
            part.unlink()


def _refuse_taken(output: Path, replace: str | None) -> None:
    if output.exists() and not output.is_dir():
        raise DatasetError(f"{output} is a file; name a folder to write to")
    if not output.exists() or not any(output.iterdir()):
        return
    if replace is None:
        raise DatasetError(
            f"{output} is there already; name another output, or say --dataset.overwrite=true"
        )
    if not (output / replace).is_file():
        raise DatasetError(
            f"{output} is not overwritten, for it has no {replace} and so is not what is written "
            "here; name another output"
        )


@contextmanager
def _lock(path: Path, output: Path) -> Iterator[None]:
    with path.open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if not os.fstat(file.fileno()).st_nlink:
                raise BlockingIOError  # its owner ended and removed it since it was opened
        except BlockingIOError:
            raise DatasetError(f"another run is writing {output}; wait for it to end") from None
        try:
            yield
        finally:
            path.unlink()


def _settle(partial: Path, output: Path, old: Path) -> None:
    """Flush everything to disk, then put the folder in its place."""
    for path in [*partial.rglob("*"), partial]:
        _flush(path)
    _remove(old)
    if output.exists():
        output.rename(old)
    partial.rename(output)
    _flush(output.parent)
    _remove(old)


def _flush(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _remove(folder: Path) -> None:
    if folder.exists():
        shutil.rmtree(folder)
