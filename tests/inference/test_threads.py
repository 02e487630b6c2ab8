"""How many threads write headlines."""

import os

import pytest

from ledeline.inference.threads import VARIABLE, num_threads


@pytest.fixture
def cores(monkeypatch: pytest.MonkeyPatch) -> None:
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
