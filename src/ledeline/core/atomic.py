"""Files and folders that appear whole or not at all, whenever the program is killed."""

import errno
import fcntl
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from ledeline.core.errors import CorpusError, DatasetError, LedelineError

_PART = ".part-"  # so the name of a file begins that is not whole yet


@contextmanager
def atomic_folder(output: Path, *, replace: str | None = None) -> Iterator[Path]:
    """Give a hidden folder beside `output` to write into; when the block ends well, it is `output`.

    If the block fails, or the program is killed, `output` is as it was; what a killed run left
    behind is cleared by the next one. Two runs with the same output cannot be under way at once.

    A folder that has anything in it is replaced only if `replace` names a file it has, which shows
    that it is of the kind that is written here. An output that is a link is written where it leads.
    """
    output = output.resolve()
    make_folder(output.parent)
    with locked(output, DatasetError):
        recover(output)
        _refuse_taken(output, replace)
        full = DatasetError(f"{output}: the disk is full; make room and run again")
        with full_disk(full), staged(output) as partial:
            yield partial
            _refuse_taken(output, replace)


@contextmanager
def atomic_write(path: Path) -> Iterator[Path]:
    """Give a name beside `path` to write to, which takes its place once all is on the disk.

    A link is written where it leads. What is there and no file, such as a device, stays.
    """
    path = path.resolve()
    if path.exists() and not path.is_file():
        kind = "a folder" if path.is_dir() else "a pipe or a device"
        raise CorpusError(f"{path} is {kind}; name a file to write to")
    part = path.with_name(f"{_PART}{os.getpid()}-{path.name}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        yield part
        flush(part)
        part.replace(path)
        flush(path.parent)
    except OSError as error:
        raise CorpusError(f"{path}: cannot be written: {error.strerror or error}") from error
    finally:
        with suppress(OSError):
            part.unlink()


def remove_left_over(folder: Path) -> None:
    """Remove what a kill left of `atomic_write` and `point` in a folder nobody else writes to."""
    for pattern in (f"{_PART}*", ".*.new"):
        for path in folder.glob(pattern):
            path.unlink()


def point(link: Path, target: Path) -> None:
    """Make a relative link to `target`, in one step where there is a link already."""
    place = target.parent.resolve() / target.name
    new = hidden(link, "new")
    remove(new)
    new.symlink_to(os.path.relpath(place, link.parent.resolve()))
    new.replace(link)
    flush(link.parent)


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


# --- what these are made of -----------------------------------------------------------------------


@contextmanager
def locked(output: Path, kind: type[LedelineError]) -> Iterator[None]:
    """Be the only one that writes `output`; where another is, that is an error of this kind."""
    path = hidden(output, "lock")
    with path.open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if not os.fstat(file.fileno()).st_nlink:
                raise BlockingIOError  # its owner ended and removed it since it was opened
        except BlockingIOError:
            raise kind(f"another run is writing {output}; wait for it to end") from None
        try:
            yield
        finally:
            path.unlink()


@contextmanager
def staged(output: Path) -> Iterator[Path]:
    """Give a hidden folder that takes the place of `output` when the block ends well.

    For one who holds the lock. What is at `output` is replaced, whatever it is; a kill between the
    two renames that this takes leaves it hidden, and `recover` puts it back.
    """
    partial = hidden(output, "partial")
    remove(partial)
    try:
        partial.mkdir()
        yield partial
        _settle(partial, output, hidden(output, "old"))
    finally:
        remove(partial)


def recover(output: Path) -> None:
    """Put back what a run that was killed between its two renames was replacing."""
    old = hidden(output, "old")
    if old.exists() and not output.exists():
        old.rename(output)


@contextmanager
def full_disk(instead: LedelineError) -> Iterator[None]:
    """Raise this error instead where the disk, or what the user may have of it, is full."""
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise instead from None
        raise


def hidden(output: Path, kind: str) -> Path:
    """A hidden name beside `output`."""
    return output.with_name(f".{output.name}.{kind}")


def make_folder(folder: Path) -> None:
    """Make a folder, and those above it, such that they are on the disk."""
    if not folder.is_dir():
        make_folder(folder.parent)
        folder.mkdir(exist_ok=True)
        flush(folder.parent)


def flush(path: Path) -> None:
    """Wait until a file or a folder is on the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def remove(path: Path) -> None:
    """Remove a folder with all that is in it, a file or a link, if it is there."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def _settle(partial: Path, output: Path, old: Path) -> None:
    """Flush everything to disk, then put the folder in its place."""
    for path in [*partial.rglob("*"), partial]:
        flush(path)
    remove(old)
    if output.exists() or output.is_symlink():
        output.rename(old)
    partial.rename(output)
    flush(output.parent)
    remove(old)
