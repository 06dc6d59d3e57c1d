"""What ends a command from outside is heard like Ctrl-C: what is being written is finished, and the way on is told."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

STOPS = ("SIGTERM", "SIGHUP")


@contextmanager
def heard_like_ctrl_c() -> Iterator[None]:
    """Turns the signals of a supervisor, or of a terminal that closes, into Ctrl-C, where Ctrl-C is heard.

    One that is ignored stays so (``nohup``).
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
        for number in taken:
            signal.signal(number, signal.SIG_DFL)


def _interrupt(_number: int, _frame: FrameType | None) -> None:
    signal.raise_signal(signal.SIGINT)
