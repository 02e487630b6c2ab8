import errno
import fcntl
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from ledeline.core.atomic import (
    atomic_folder,
    atomic_symlink,
    atomic_write,
    exclusive_lock,
    make_folder,
    remove_path,
    staging_folder,
)
from ledeline.core.errors import ConfigError, CorpusError, DatasetError


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_the_folder_appears_when_the_block_ends(tmp_path: Path) -> None:
    output = tmp_path / "deep" / "out"
    with atomic_folder(output) as folder:
        (folder / "file").write_text("x")
        assert not output.exists()
    assert (output / "file").read_text() == "x"
    assert names(output.parent) == ["out"]


def test_nothing_is_left_of_a_failure(tmp_path: Path) -> None:
    def fail() -> None:
        with atomic_folder(tmp_path / "out") as folder:
            (folder / "file").write_text("x")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    assert names(tmp_path) == []


def test_what_is_there_is_not_overwritten_unasked(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "precious").write_text("x")
    with (
        pytest.raises(DatasetError, match=r"out already exists; .*overwrite=true"),
        atomic_folder(tmp_path / "out"),
    ):
        pass
    assert names(tmp_path / "out") == ["precious"]


def test_overwriting_keeps_the_old_one_until_the_new_is_whole(tmp_path: Path) -> None:
    output = tmp_path / "out"
    output.mkdir()
    (output / "old").write_text("x")
    with pytest.raises(RuntimeError), atomic_folder(output, replace="old"):
        raise RuntimeError
    assert names(output) == ["old"]
    with atomic_folder(output, replace="old") as folder:
        (folder / "new").write_text("x")
    assert names(output) == ["new"]
    assert names(tmp_path) == ["out"]


def test_a_folder_of_another_kind_is_never_replaced(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "precious").write_text("x")
    with (
        pytest.raises(
            DatasetError, match=r"out is not overwritten, because it has no dataset\.json"
        ),
        atomic_folder(tmp_path / "out", replace="dataset.json"),
    ):
        pass
    assert names(tmp_path / "out") == ["precious"]
    assert names(tmp_path) == ["out"]


def test_a_link_is_written_where_it_leads(tmp_path: Path) -> None:
    real, link = tmp_path / "disk" / "real", tmp_path / "link"
    link.symlink_to(real)
    for content in ("first", "second"):
        with atomic_folder(link, replace="file") as folder:
            (folder / "file").write_text(content)
        assert link.is_symlink()
        assert (real / "file").read_text() == content
    assert names(tmp_path) == ["disk", "link"]
    assert names(real.parent) == ["real"]


def test_a_lock_that_was_removed_meanwhile_is_not_trusted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def ends_meanwhile(file: object, operation: int) -> None:
        (tmp_path / ".out.lock").unlink()  # between our opening and our locking

    monkeypatch.setattr(fcntl, "flock", ends_meanwhile)
    with pytest.raises(DatasetError, match="another run"), atomic_folder(tmp_path / "out"):
        pass


def test_a_kill_between_the_two_renames_loses_nothing(tmp_path: Path) -> None:
    (tmp_path / ".out.old").mkdir()
    (tmp_path / ".out.old" / "old").write_text("x")
    with pytest.raises(DatasetError, match="already exists"), atomic_folder(tmp_path / "out"):
        pass
    assert names(tmp_path / "out") == ["old"]


def test_an_empty_folder_may_be_filled(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    with atomic_folder(tmp_path / "out") as folder:
        (folder / "file").write_text("x")
    assert names(tmp_path / "out") == ["file"]


def test_a_file_in_the_way_is_named(tmp_path: Path) -> None:
    (tmp_path / "out").write_text("x")
    with pytest.raises(DatasetError, match="out is a file"), atomic_folder(tmp_path / "out"):
        pass


def test_a_full_disk_is_said(tmp_path: Path) -> None:
    def fill() -> None:
        with atomic_folder(tmp_path / "out"):
            raise OSError(errno.ENOSPC, "No space left on device")

    with pytest.raises(DatasetError, match="out: the disk is full; make room"):
        fill()
    assert names(tmp_path) == []


def test_two_runs_at_once_are_refused(tmp_path: Path) -> None:
    with (tmp_path / ".out.lock").open("w") as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        with pytest.raises(DatasetError, match="another run"), atomic_folder(tmp_path / "out"):
            pass


def test_what_a_killed_run_left_is_cleared(tmp_path: Path) -> None:
    code = (
        "import sys, time; from pathlib import Path; from ledeline.core.atomic import atomic_folder\n"
        "with atomic_folder(Path(sys.argv[1])) as folder:\n"
        "    (folder / 'half').write_text('x'); print('ready', flush=True); time.sleep(60)"
    )
    output = tmp_path / "out"
    with subprocess.Popen(
        [sys.executable, "-c", code, str(output)], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        os.kill(process.pid, signal.SIGKILL)
    assert not output.exists()
    with atomic_folder(output) as folder:
        (folder / "file").write_text("x")
    assert names(output) == ["file"]
    assert names(tmp_path) == ["out"]


def test_file_is_whole_or_absent(tmp_path: Path) -> None:
    path = tmp_path / "new" / "folder" / "x.txt"
    with pytest.raises(UnicodeEncodeError), atomic_write(path) as part:
        part.write_text("\ud800")
    assert list(path.parent.iterdir()) == []
    path.write_text("old")
    with atomic_write(path) as part:
        part.write_text("new")
        assert path.read_text() == "old"
    assert path.read_text() == "new"
    assert list(path.parent.iterdir()) == [path]


@pytest.mark.parametrize("name", ["file/x.txt", "n" * 255])
def test_place_that_cannot_be_written_to(tmp_path: Path, name: str) -> None:
    (tmp_path / "file").write_text("")
    with (
        pytest.raises(CorpusError, match="cannot be written: "),
        atomic_write(tmp_path / name) as part,
    ):
        part.write_text("text")


def test_a_link_is_relative_and_replaced_in_one_step(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    link = tmp_path / "run" / "best"
    for name in ("1", "2"):
        (tmp_path / "run" / "all" / name).mkdir(parents=True)
    atomic_symlink(link, tmp_path / "run" / "all" / "1")
    (tmp_path / "run" / ".best.new").symlink_to("left by a killed run")
    seen = []
    original = os.replace

    def spy(source: Path, target: Path) -> None:
        seen.append(str(link.readlink()))  # the earlier one is there until the very last
        original(source, target)

    monkeypatch.setattr(os, "replace", spy)
    atomic_symlink(link, tmp_path / "run" / "all" / "2")
    assert seen == ["all/1"]
    assert link.readlink() == Path("all/2")
    assert names(tmp_path / "run") == ["all", "best"]
    (tmp_path / "run").rename(tmp_path / "moved")
    assert (tmp_path / "moved" / "best").resolve() == tmp_path / "moved" / "all" / "2"


def test_a_link_leads_there_from_wherever_its_folder_really_is(tmp_path: Path) -> None:
    (tmp_path / "disk" / "deep" / "run").mkdir(parents=True)
    (tmp_path / "target").mkdir()
    (tmp_path / "run").symlink_to(tmp_path / "disk" / "deep" / "run")
    atomic_symlink(tmp_path / "run" / "best", tmp_path / "target")
    assert (tmp_path / "run" / "best").resolve() == tmp_path / "target"


def test_each_new_folder_is_flushed_into_the_one_above(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    flushed = []
    monkeypatch.setattr(
        os, "fsync", lambda file: flushed.append(Path(f"/proc/self/fd/{file}").readlink())
    )
    make_folder(tmp_path / "a" / "b")
    assert flushed == [tmp_path, tmp_path / "a"]
    make_folder(tmp_path / "a" / "b")
    assert len(flushed) == 2


def test_whatever_is_in_the_way_is_staged_over(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    (tmp_path / "link").symlink_to("nowhere")
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "old").write_text("x")
    for name in ("file", "link", "folder"):
        with staging_folder(tmp_path / name) as folder:
            (folder / "new").write_text("x")
        assert names(tmp_path / name) == ["new"]
    assert names(tmp_path) == ["file", "folder", "link"]


def test_removing_a_link_leaves_what_it_leads_to(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    remove_path(tmp_path / "link")
    remove_path(tmp_path / "nothing")
    assert names(tmp_path) == ["real"]


def test_a_lock_that_is_taken_is_an_error_of_the_given_kind(tmp_path: Path) -> None:
    with (
        exclusive_lock(tmp_path / "out", DatasetError),
        pytest.raises(ConfigError, match=r"another run is writing .*out; wait until it ends"),
        exclusive_lock(tmp_path / "out", ConfigError),
    ):
        pass
    assert names(tmp_path) == []


def test_a_file_that_is_a_link_is_written_where_it_leads(tmp_path: Path) -> None:
    (tmp_path / "real").write_text("old")
    (tmp_path / "link").symlink_to("real")
    with atomic_write(tmp_path / "link") as part:
        part.write_text("new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real").read_text() == "new"


def test_what_is_no_file_stays(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder").mkdir()
    for name, kind in (("pipe", "a pipe or a device"), ("folder", "a folder")):
        with (
            pytest.raises(CorpusError, match=rf"{name} is {kind}; name a file"),
            atomic_write(tmp_path / name),
        ):
            pass
    assert (tmp_path / "pipe").is_fifo()
    assert names(tmp_path) == ["folder", "pipe"]
