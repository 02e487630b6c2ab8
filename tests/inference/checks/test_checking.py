"""Checks a step at a time: put aside, interleaved, given up."""

import time
from typing import Final

import pytest

from ledeline.inference.checks.check import Check
from ledeline.inference.checks.checker import Checker
from ledeline.inference.checks.checking import Checking, read_pair
from ledeline.synth.newsroom import generate

pytestmark = pytest.mark.usefixtures("one_thread")

STORIES: Final = list(generate(4, 9))
PAIRS: Final = [
    *((one.lede, one.headline) for one in STORIES),
    ("", "Rain falls"),
    ("About 282 million people went hungry.", "28m people hungry"),
    ("Rain fell.", ""),
]
NEAR: Final = 2e-4  # supports have four decimals


@pytest.fixture(scope="module")
def checker() -> Checker:
    return Checker.load()


@pytest.fixture(scope="module")
def alone(checker: Checker) -> list[Check]:
    return [checker.check(*pair) for pair in PAIRS]


def begun(checker: Checker, pairs: list[tuple[str, str]] = PAIRS) -> Checking:
    return Checking(checker, [read_pair(checker, *pair) for pair in pairs])


def finish(*running: Checking) -> None:
    while not all(one.done for one in running):
        for one in running:
            if not one.done:
                one.advance()


def assert_same(found: Check | None, wanted: Check) -> None:
    assert found is not None
    assert found.doubts == wanted.doubts
    assert found.support == pytest.approx(wanted.support, abs=NEAR)


def test_together_they_are_as_alone(checker: Checker, alone: list[Check]) -> None:
    checking = begun(checker)
    finish(checking)
    for found, wanted in zip(checking.results, alone, strict=True):
        assert_same(found, wanted)


def test_interleaved_ones_do_not_disturb_each_other(checker: Checker, alone: list[Check]) -> None:
    running = [begun(checker, [pair]) for pair in PAIRS]
    finish(*running)
    for one, wanted in zip(running, alone, strict=True):
        assert_same(one.results[0], wanted)


@pytest.mark.parametrize("steps", [0, 1, 5, 12, 1000])
def test_those_that_are_given_up_do_not_disturb_the_others(
    checker: Checker, alone: list[Check], steps: int
) -> None:
    checking = begun(checker)
    for _ in range(steps):
        if not checking.done:
            checking.advance()
    checking.give_up([1, 3])
    finish(checking)
    for row in (0, 2, 4, 5, 6):
        assert_same(checking.results[row], alone[row])
    if not steps:
        assert checking.results[1] is checking.results[3] is None


def test_nothing_is_done_for_nobody(checker: Checker) -> None:
    checking = begun(checker)
    checking.advance()
    checking.give_up(range(len(PAIRS)))
    assert checking.done


# Texts for which a rule that compares all with all would take seconds: the numbers of one with those
# of the other.
NUMBERS: Final = " ".join(map(str, range(3000)))[:5000]
DEAR: Final = {
    "numbers": (NUMBERS, " ".join(map(str, range(7000, 7100)))[:500]),
    "the same number": ("1 " * 2500, "2 " * 250),
    "things that are counted": ("2 goals 3 games " * 310, "3 goals 2 games " * 31),
    "quotations": ('"a" ' * 1250, '"b" ' * 125),
    "names": ("Zab Zeb " * 600, "Zob Zub " * 60),
}


@pytest.mark.parametrize("name", DEAR)
def test_steps_are_short_whatever_the_texts(checker: Checker, name: str) -> None:
    checking, longest = begun(checker, [DEAR[name]]), 0.0
    while not checking.done:
        began = time.thread_time()
        checking.advance()
        longest = max(longest, time.thread_time() - began)
    assert longest < 0.5  # it takes a tenth of that; all with all would take seconds
