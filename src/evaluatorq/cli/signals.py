"""What ends a command from outside is heard like Ctrl-C: what is being written is finished, and the way on is told.

A wish to stop often comes more than once: a terminal signals the whole group, a supervisor sends two kinds, a person
taps twice. What follows within a second is the same wish; what comes later ends also what does not want to stop.
"""

from __future__ import annotations

import atexit
import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

STOPS = ("SIGTERM", "SIGHUP")
SAME_S = 1.0
INTERRUPTED = 130


@contextmanager
def heard_like_ctrl_c(*, ends_process: bool = False) -> Iterator[None]:
    """Turns the signals of a supervisor, or of a terminal that closes, into Ctrl-C, where Ctrl-C is heard.

    One that is ignored stays so (``nohup``). Where the process ends with the block, later ones only hurry it.
    """
    is_main = threading.current_thread() is threading.main_thread()
    taken = [
        number
        for number in (getattr(signal, name, None) for name in STOPS)
        if number is not None and is_main and signal.getsignal(number) is signal.SIG_DFL
    ]
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        taken = []
    for number in taken:
        signal.signal(number, _interrupt)
    try:
        yield
    finally:
        if ends_process and taken:
            _only_hurry([*taken, signal.SIGINT])
        else:
            for number in taken:
                signal.signal(number, signal.SIG_DFL)


@contextmanager
def heard_once() -> Iterator[None]:
    """In an event loop: a signal within a second of the last is not passed on to the loop's own handler."""
    handler = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not callable(handler):
        yield
        return
    last = -SAME_S

    def hear(number: int, frame: FrameType | None) -> None:
        nonlocal last
        if (now := time.monotonic()) - last >= SAME_S:
            last = now
            handler(number, frame)

    signal.signal(signal.SIGINT, hear)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, handler)


def _interrupt(_number: int, _frame: FrameType | None) -> None:
    signal.raise_signal(signal.SIGINT)


def _only_hurry(numbers: list[signal.Signals]) -> None:
    """All is said: threads that an agent left may be waited for, but not longer than anybody wants."""
    for number in numbers:
        signal.signal(number, lambda *_: os._exit(INTERRUPTED))

    @atexit.register
    def hear_nothing() -> None:  # the interpreter takes its handlers down, and a signal would be told as a crash
        for number in numbers:
            signal.signal(number, signal.SIG_IGN)
