"""How many threads write headlines."""

import os
from pathlib import Path

import pytest

from ledeline.inference import threads
from ledeline.inference.threads import VARIABLE, num_threads


@pytest.fixture
def cgroups(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where limits are written; there is none."""
    folder = tmp_path / "cgroup"
    folder.mkdir()
    (tmp_path / "own").write_text("0::/shop/web\n")
    monkeypatch.setattr(threads, "_CGROUPS", folder)
    monkeypatch.setattr(threads, "_OWN_CGROUP", tmp_path / "own")
    return folder


@pytest.fixture
def cores(cgroups: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Five of nine cores are the process's."""
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(5)), raising=False)
    monkeypatch.setattr(os, "cpu_count", lambda: 9)


@pytest.mark.usefixtures("cores")
@pytest.mark.parametrize(("given", "number"), [("1", 1), (" 3 ", 3), ("4,2", 4), ("64", 64)])
def test_the_variable_says(given: str, number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, given)
    assert num_threads() == number


@pytest.mark.usefixtures("cores")
@pytest.mark.parametrize("given", [None, "", "0", "-2", "many", "1.5", ",2"])
def test_else_they_are_the_cores_of_the_process(
    given: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    if given is not None:
        monkeypatch.setenv(VARIABLE, given)
    assert num_threads() == 5


@pytest.mark.usefixtures("cores")
def test_where_a_process_has_no_cores_of_its_own_they_are_all(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    monkeypatch.delattr(os, "sched_getaffinity")
    assert num_threads() == 9
    monkeypatch.setattr(os, "cpu_count", lambda: None)
    assert num_threads() == 1


@pytest.mark.usefixtures("cores")
@pytest.mark.parametrize(
    ("files", "number"),
    [
        ({"cpu.max": "200000 100000\n"}, 2),
        ({"cpu.max": "150000 100000\n"}, 2),
        ({"cpu.max": "10000 100000\n"}, 1),
        ({"cpu.max": "max 100000\n"}, 5),
        ({"cpu.max": "900000 100000\n"}, 5),
        ({"cpu.max": "rubbish"}, 5),
        ({"cpu.max": "1 0"}, 5),
        ({"shop/cpu.max": "300000 100000", "shop/web/cpu.max": "max 100000"}, 3),
        ({"shop/cpu.max": "300000 100000", "shop/web/cpu.max": "100000 100000"}, 1),
        ({"mail/cpu.max": "100000 100000"}, 5),
        ({"cpu/cpu.cfs_quota_us": "200000\n", "cpu/cpu.cfs_period_us": "100000\n"}, 2),
        ({"cpu/cpu.cfs_quota_us": "-1\n", "cpu/cpu.cfs_period_us": "100000\n"}, 5),
    ],
)
def test_a_container_may_use_less(
    files: dict[str, str], number: int, cgroups: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    for name, text in files.items():
        (cgroups / name).parent.mkdir(parents=True, exist_ok=True)
        (cgroups / name).write_text(text)
    assert num_threads() == number
    monkeypatch.setenv(VARIABLE, "7")
    assert num_threads() == 7


@pytest.mark.usefixtures("cores")
def test_a_group_beyond_the_container_is_no_file(
    cgroups: Path, monkeypatch, tmp_path: Path
) -> None:
    """A path may lead out of what the container sees."""
    monkeypatch.delenv(VARIABLE, raising=False)
    (tmp_path / "own").write_text("0::/../../web\n")
    assert num_threads() == 5
    (tmp_path / "own").unlink()
    assert num_threads() == 5
