"""What goes where: results to standard output, everything said to a person to standard error."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from io import TextIOWrapper
from pathlib import Path
from typing import TextIO

NARROWEST, WIDEST = 60, 110


def prepare_streams() -> None:
    """Characters that a stream's encoding lacks are written out instead of ending the command.

    A stream that was closed before we began leads nowhere. Its number must not go to the next file that is opened,
    such as a journal, which would then be written over.
    """
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)
    sys.stdin = sys.stdin or open(0, encoding="utf-8", closefd=False)  # noqa: SIM115
    sys.stdout = sys.stdout or open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
    sys.stderr = sys.stderr or open(2, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def let_go_of_stdout() -> None:
    """What is left in the buffer cannot be written; the interpreter must not complain about it at exit."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def say(text: str) -> None:
    """Tells a person; a reader who has gone does not stop the work."""
    try:
        sys.stderr.write(text if text.endswith("\n") else text + "\n")
        sys.stderr.flush()
    except (BrokenPipeError, ValueError):
        pass


def emit(text: str) -> None:
    """Writes a result."""
    sys.stdout.write(text if text.endswith("\n") else text + "\n")


def emit_file(path: Path) -> None:
    """Copies a file to standard output without holding it."""
    sys.stdout.flush()
    with path.open("rb") as file:
        shutil.copyfileobj(file, sys.stdout.buffer)
    sys.stdout.buffer.flush()


@contextmanager
def spoken_aside(wanted: bool) -> Iterator[None]:
    """Sends what an agent or its children print to standard error, so that standard output holds one document."""
    if not wanted:
        yield
        return
    sys.stdout.flush()
    kept = os.dup(1)
    os.dup2(2, 1)
    try:
        yield
    finally:
        sys.stdout.flush()
        os.dup2(kept, 1)
        os.close(kept)


def width_of(stream: TextIO) -> int:
    """Columns to draw in: the terminal's within reason, 80 in a log."""
    columns = shutil.get_terminal_size((80, 24)).columns if stream.isatty() or "COLUMNS" in os.environ else 80
    return min(max(columns, NARROWEST), WIDEST)


def is_lively(stream: TextIO) -> bool:
    """The stream is a terminal that understands control sequences."""
    return stream.isatty() and os.environ.get("TERM") != "dumb"


def has_color(stream: TextIO) -> bool:
    """Colour is wanted: a terminal, and NO_COLOR is not set."""
    return is_lively(stream) and not os.environ.get("NO_COLOR")
