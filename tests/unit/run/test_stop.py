from __future__ import annotations

import os
import queue
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator

import pytest

from llamasweep.run.process import Item, Wake
from llamasweep.run.stop import StopSignals

HANDLED = [signal.SIGINT, signal.SIGTERM, signal.SIGHUP]


@pytest.fixture(autouse=True)
def own_handlers() -> Iterator[None]:
    """Whatever a test does to the handlers, the next one finds the usual ones."""
    before = {number: signal.getsignal(number) for number in HANDLED}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


def test_nothing_is_asked_at_first() -> None:
    with StopSignals() as stop:
        assert (stop.is_asked, stop.is_urgent, stop.is_late, stop.is_over) == (False,) * 4


@pytest.mark.parametrize("number", HANDLED)
def test_one_signal_asks_and_two_urge(number: signal.Signals) -> None:
    with StopSignals() as stop:
        signal.raise_signal(number)
        assert (stop.is_asked, stop.is_urgent, stop.is_over) == (True, False, True)
        signal.raise_signal(signal.SIGINT)
        assert (stop.is_asked, stop.is_urgent) == (True, True)


def test_the_handlers_of_before_are_put_back() -> None:
    before = [signal.getsignal(number) for number in HANDLED]
    with StopSignals():
        assert [signal.getsignal(number) for number in HANDLED] != before
    assert [signal.getsignal(number) for number in HANDLED] == before


def test_a_signal_that_is_ignored_stays_ignored() -> None:
    """nohup ignores SIGHUP, a shell's background job SIGINT: that is a wish."""
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    with StopSignals() as stop:
        signal.raise_signal(signal.SIGHUP)
        assert not stop.is_asked
        assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN


def test_a_signal_wakes_the_loop_that_listens() -> None:
    inbox: queue.SimpleQueue[Item] = queue.SimpleQueue()
    with StopSignals() as stop:
        stop.attach(inbox)
        assert inbox.empty()
        signal.raise_signal(signal.SIGINT)
        assert inbox.get_nowait() == Wake()


def test_a_loop_that_listens_late_is_woken_at_once() -> None:
    inbox: queue.SimpleQueue[Item] = queue.SimpleQueue()
    with StopSignals() as stop:
        signal.raise_signal(signal.SIGINT)
        stop.attach(inbox)
        assert inbox.get_nowait() == Wake()


def test_a_signal_ends_a_wait() -> None:
    with StopSignals() as stop:
        timer = threading.Timer(0.02, os.kill, [os.getpid(), signal.SIGTERM])
        timer.start()
        started_s = time.monotonic()
        stop.wait(30)
        assert time.monotonic() - started_s < 10
        assert stop.is_asked
        timer.join()


def test_after_a_signal_nothing_is_waited_for() -> None:
    with StopSignals() as stop:
        signal.raise_signal(signal.SIGINT)
        started_s = time.monotonic()
        stop.wait(30)
        stop.wait(30)
        assert time.monotonic() - started_s < 10


def test_the_deadline_ends_a_wait_and_the_run() -> None:
    stop = StopSignals(time.monotonic() + 0.01)
    started_s = time.monotonic()
    stop.wait(30)
    assert time.monotonic() - started_s < 10
    assert (stop.is_late, stop.is_over, stop.is_asked) == (True, True, False)
    stop.wait(30)  # over: returns at once
    assert time.monotonic() - started_s < 10


def test_a_wait_without_signal_or_deadline_ends_by_itself() -> None:
    stop = StopSignals()
    started_s = time.monotonic()
    stop.wait(0.01)
    stop.wait(0)
    assert 0.009 <= time.monotonic() - started_s < 10
    assert not stop.is_over


_IN_THE_MIDDLE = """
import signal, sys
from llamasweep.run.stop import StopSignals

def interrupt_the_bookkeeping(frame, event, argument):
    holder = type(frame.f_locals.get("self")).__name__
    if event == "call" and frame.f_code.co_name == "wait" and holder == "Condition":
        sys.settrace(None)
        signal.raise_signal(signal.SIGINT)

with StopSignals() as stop:
    sys.settrace(interrupt_the_bookkeeping)
    stop.wait(0.01)
    sys.settrace(None)
    signal.raise_signal(signal.SIGTERM)
    print(stop.is_asked)
"""


def test_a_signal_in_the_middle_of_the_waits_own_bookkeeping_blocks_nothing() -> None:
    """threading.Event is not safe to set from a signal handler: its lock may be held by the very thread."""
    done = subprocess.run(
        [sys.executable, "-c", _IN_THE_MIDDLE],
        capture_output=True,
        text=True,
        timeout=30,
        check=True,
    )
    assert done.stdout == "True\n"
