import signal
import threading
from collections.abc import Callable, Iterator

import pytest

from ledeline.core.signals import Interrupted, Stop, handled_by

BOTH = pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])


@pytest.fixture(autouse=True)
def own_handlers() -> Iterator[None]:
    """Signals are heard also where the tests run in the background of a shell."""
    before = {one: signal.getsignal(one) for one in (signal.SIGINT, signal.SIGTERM)}
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    yield
    for one, handler in before.items():
        signal.signal(one, handler)


def interrupted(work: Callable[[], None]) -> int:
    """The signal that ends the work."""
    with pytest.raises(Interrupted) as raised:
        work()
    return raised.value.number


class TestListening:
    @BOTH
    def test_a_signal_is_noted(self, number: signal.Signals) -> None:
        with Stop().listening() as stop:
            assert not stop.requested
            signal.raise_signal(number)
            assert stop.requested
        assert stop.signal == number
        assert stop.reason == {signal.SIGINT: "Ctrl-C", signal.SIGTERM: "SIGTERM"}[number]

    @BOTH
    def test_the_second_does_not_wait(self, number: signal.Signals) -> None:
        def work() -> None:
            with Stop().listening():
                signal.raise_signal(signal.SIGTERM)
                signal.raise_signal(number)

        assert interrupted(work) == number


class TestInterrupting:
    @BOTH
    def test_a_signal_interrupts_at_once(self, number: signal.Signals) -> None:
        def work() -> None:
            with Stop().interrupting():
                signal.raise_signal(number)
                pytest.fail("it went on")

        assert interrupted(work) == number

    def test_what_is_held_ends_first(self) -> None:
        stop, done = Stop(), []

        def work() -> None:
            with stop.interrupting():
                with stop.held():
                    signal.raise_signal(signal.SIGTERM)
                    done.append("written")
                pytest.fail("it went on")

        assert interrupted(work) == signal.SIGTERM
        assert done == ["written"]

    def test_the_second_does_not_wait_for_what_is_held(self) -> None:
        stop = Stop()

        def work() -> None:
            with stop.interrupting(), stop.held():
                signal.raise_signal(signal.SIGTERM)
                signal.raise_signal(signal.SIGINT)
                pytest.fail("it went on")

        assert interrupted(work) == signal.SIGINT

    def test_an_error_within_what_is_held_is_not_hidden(self) -> None:
        stop = Stop()

        def work() -> None:
            with stop.interrupting(), stop.held():
                signal.raise_signal(signal.SIGTERM)
                raise OSError("full")

        with pytest.raises(OSError, match="full"):
            work()

    def test_behind_what_is_held_a_signal_interrupts_again(self) -> None:
        stop = Stop()

        def work() -> None:
            with stop.interrupting():
                with stop.held():
                    pass
                signal.raise_signal(signal.SIGTERM)
                pytest.fail("it went on")

        assert interrupted(work) == signal.SIGTERM


@pytest.mark.parametrize("way", ["listening", "interrupting"])
class TestBoth:
    def test_handlers_are_put_back(self, way: str) -> None:
        before = [signal.getsignal(one) for one in (signal.SIGINT, signal.SIGTERM)]
        with getattr(Stop(), way)():
            assert signal.getsignal(signal.SIGTERM) is not before[1]
        assert [signal.getsignal(one) for one in (signal.SIGINT, signal.SIGTERM)] == before

    def test_handlers_are_put_back_behind_an_error(self, way: str) -> None:
        before = signal.getsignal(signal.SIGTERM)
        with pytest.raises(ValueError, match="astray"), getattr(Stop(), way)():
            raise ValueError("astray")
        assert signal.getsignal(signal.SIGTERM) is before

    def test_a_signal_that_is_ignored_stays_ignored(self, way: str) -> None:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        with getattr(Stop(), way)() as stop:
            signal.raise_signal(signal.SIGINT)
            assert not stop.requested
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN

    def test_in_another_thread_nothing_listens(self, way: str) -> None:
        before, seen = signal.getsignal(signal.SIGTERM), []

        def work() -> None:
            with getattr(Stop(), way)():
                seen.append(signal.getsignal(signal.SIGTERM))

        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
        assert seen == [before]


class TestTime:
    def test_there_is_no_limit_unless_one_is_given(self) -> None:
        assert not Stop().requested
        assert Stop().at_most(1e9) == 1e9

    def test_it_is_over(self) -> None:
        stop = Stop(max_minutes=0)
        assert stop.requested
        assert stop.signal is None
        assert stop.reason == "time limit of 0 minutes reached"
        assert stop.at_most(60) <= 0

    def test_it_is_not_over_yet(self) -> None:
        stop = Stop(max_minutes=1)
        assert not stop.requested
        assert stop.at_most(10) == 10
        assert 50 < stop.at_most(600) <= 60

    def test_a_process_that_stops_with_another_says_so(self) -> None:
        assert Stop().reason == "another process was stopped"


def test_an_interruption_is_one_of_the_keyboard() -> None:
    """So who knows nothing of us ends on it, too."""
    assert issubclass(Interrupted, KeyboardInterrupt)


def test_any_handler_can_be_given() -> None:
    with handled_by(signal.SIG_DFL):
        assert signal.getsignal(signal.SIGINT) is signal.SIG_DFL
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
