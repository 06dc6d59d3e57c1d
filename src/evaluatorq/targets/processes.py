"""A process that is spoken to in lines: its answers, its last words, and its end together with all that it started.

Standard error is read by a thread, so that a process never waits to be heard, and only its end is kept. A process hands
down its environment to what it starts, so a mark in it finds also those that left the group and were orphaned: on
Linux, where the environment of others can be read. Elsewhere what begins a session of its own is out of reach.
"""

from __future__ import annotations

import errno
import os
import secrets
import shutil
import signal
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from subprocess import PIPE
from threading import Thread

import anyio
import anyio.to_thread
from anyio.abc import Process
from anyio.streams.buffered import BufferedByteReceiveStream

from evaluatorq.errors import CallError
from evaluatorq.llm.errors import clean_message, clean_raw
from evaluatorq.llm.reading import MOST_BYTES
from evaluatorq.llm.tags import ending
from evaluatorq.targets.parts import start_of, unfit

MARK = "EVALUATORQ_PROCESS"
GRACE_S = 1.0
_AT_ONCE_S = 0.001
_TAIL = 2_000
_MOST_SHOWN = 100
_PIECE = 65_536
_ROUNDS = 50
_ROUND_S = 0.01
_ROUNDS_LATE = 2
"""So many rounds of its loop after a write to a closed pipe asyncio still takes more; only then it fails."""


class LastWords:
    """The end of what is written to a pipe; ``writer`` is for a process. ``RuntimeError`` when no thread is left."""

    def __init__(self) -> None:
        self._reader, self.writer = os.pipe()
        self._kept = b""
        self._over = False
        self._thread = Thread(target=self._listen, name="evaluatorq standard error", daemon=True)
        try:
            self._thread.start()
        except BaseException:
            os.close(self._reader)
            os.close(self.writer)
            raise

    def _listen(self) -> None:
        left = 2  # one under way, and what the pipe holds at the end
        with suppress(BlockingIOError):
            while left and (piece := os.read(self._reader, _PIECE)):
                self._kept = (self._kept + piece)[-_TAIL:]
                left -= self._over
        os.close(self._reader)

    def end(self) -> str:
        """Stops listening, whoever may hold the pipe still, and returns what was heard last."""
        if not self._over:
            os.set_blocking(self._reader, False)
            self._over = True
            with suppress(BrokenPipeError):  # it has ended already
                os.write(self.writer, b"\n")  # wakes the thread, behind all that was written
            self._thread.join()
            os.close(self.writer)
        kept = self._kept.decode("utf-8", "replace")
        return (ending(kept, len(kept) - 1) if len(self._kept) == _TAIL else kept).strip()


class LineProcess:
    """A started process, asked one line at a time."""

    def __init__(self, process: Process, where: str, words: LastWords, mark: str) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self._process = process
        self._where = where
        self._words = words
        self._mark = mark
        self._input = process.stdin
        self._output = BufferedByteReceiveStream(process.stdout)
        self._asked = False

    @classmethod
    async def start(cls, command: Sequence[str], cwd: str | None, env: Mapping[str, str], where: str) -> LineProcess:
        """Starts ``command``, ``env`` added to the present environment. ``CallError`` when it cannot be."""
        mark = secrets.token_hex(8)
        marked = {MARK: f"{os.environ.get(MARK, '')}/{mark}"}  # also of those whose agent is an evaluatorq itself
        try:
            words = LastWords()
        except (OSError, RuntimeError) as error:
            raise CallError("internal_error", f"No process can be listened to: {error}", retryable=True) from error
        try:
            process = await anyio.open_process(
                command,
                stdin=PIPE,
                stderr=words.writer,
                cwd=cwd,
                env={**os.environ, **env, **marked},
                start_new_session=True,
            )
        except OSError as error:
            words.end()
            message = f"{where} could not be started: {_why_not(error, command[0])}"
            raise CallError("target_error", message, component="target") from error
        except BaseException:
            words.end()
            raise
        return cls(process, where, words, mark)

    # ---------------------------------------------------------------- one line in, one line out

    async def ask(self, line: bytes) -> bytes:
        """The next line of standard output that holds anything, after ``line`` was sent."""
        await self._refuse_leftovers()
        self._asked = True
        answers: list[bytes | CallError] = []
        async with anyio.create_task_group() as group:
            group.start_soon(self._given_up_at_its_end, group.cancel_scope)
            answers.append(await self._exchange(line))
            group.cancel_scope.cancel()
        answer = answers[0] if answers else await self._gone("output")
        if isinstance(answer, CallError):
            raise answer
        return answer

    async def _refuse_leftovers(self) -> None:
        """A line too many would be taken for the answer to the next question."""
        if not self._asked:
            return
        said = self._output.buffer
        with suppress(anyio.EndOfStream, anyio.BrokenResourceError), anyio.move_on_after(_AT_ONCE_S):
            while not said.strip():
                said = await self._output.receive()
        if said.strip():
            raise unfit(
                f"{self._where} answered more than one line to one question: {start_of(said)!r} came after the answer."
            )

    async def _exchange(self, line: bytes) -> bytes | CallError:
        heard = await self._sent(line)
        with anyio.move_on_after(None if heard else GRACE_S):
            return await self._answered("output" if heard else "input")
        return await self._gone("input")

    async def _sent(self, line: bytes) -> bool:
        """Whether it took the line. One that did not may have answered all the same, and ended."""
        try:
            await self._input.send(line + b"\n")
            for _ in range(_ROUNDS_LATE):
                await self._input.send(b"")
        except (anyio.BrokenResourceError, anyio.ClosedResourceError, OSError):
            return False
        return True

    async def _answered(self, closed: str) -> bytes | CallError:
        try:
            while not (answer := await self._output.receive_until(b"\n", MOST_BYTES)).strip():
                pass
        except anyio.DelimiterNotFound:
            return unfit(f"{self._where} answered a line of more than {MOST_BYTES:,} bytes.")
        except (anyio.IncompleteRead, anyio.EndOfStream, anyio.BrokenResourceError, anyio.ClosedResourceError):
            return await self._gone(closed)
        return answer

    async def _given_up_at_its_end(self, asking: anyio.CancelScope) -> None:
        """What a process started may hold its standard output when it is gone: there is no answer to wait for."""
        await self._process.wait()
        await anyio.sleep(GRACE_S)
        asking.cancel()

    async def _gone(self, closed: str) -> CallError:
        with anyio.move_on_after(GRACE_S):
            await self._process.wait()
        tail = self._words.end()
        last = ending(tail.rpartition("\n")[2], _MOST_SHOWN)
        said = f"; its last words on standard error: {last}" if last else ""
        return CallError(
            "target_error",
            clean_message(f"{self._where} {_ending(self._process.returncode, closed)} before it answered{said}"),
            retryable=True,
            component="target",
            raw=clean_raw(tail.encode()),
        )

    # ---------------------------------------------------------------- its end

    async def stop(self, *, gently: bool) -> None:
        """Closes standard input, waits a moment if ``gently``, then kills the process and what it started."""
        with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError, OSError):
            await self._input.aclose()
        if gently:
            with anyio.move_on_after(GRACE_S):
                await self._process.wait()
        self._kill()
        await anyio.to_thread.run_sync(_end_marked, self._mark.encode())
        await self._process.aclose()
        self._words.end()

    def _kill(self) -> None:
        with suppress(ProcessLookupError, PermissionError):
            if hasattr(os, "killpg"):
                os.killpg(self._process.pid, signal.SIGKILL)
            elif self._process.returncode is None:
                self._process.kill()


def _why_not(error: OSError, program: str) -> str:
    if error.errno == errno.ENOEXEC:
        return "it is neither a program nor a script whose first line (#!) names what runs it"
    if error.errno == errno.ENOENT and shutil.which(program) is not None:
        return "what its first line (#!) names to run it is not there"
    return error.strerror or str(error)


def _ending(code: int | None, closed: str) -> str:
    if code is None:
        return f"closed its standard {closed}"
    if code >= 0:
        return f"exited with code {code}"
    try:
        return f"was ended by {signal.Signals(-code).name}"
    except ValueError:
        return f"was ended by signal {-code}"


def _end_marked(mark: bytes) -> None:
    """Kills all that carry the mark, group by group, until none is left: one that forks is gone before it is hit."""
    for _ in range(_ROUNDS):
        found = False
        for pid in _marked(mark):
            found = True
            with suppress(OSError):
                if (group := os.getpgid(pid)) != os.getpgrp():
                    os.killpg(group, signal.SIGKILL)
        if not found:
            return
        time.sleep(_ROUND_S)


def _marked(mark: bytes) -> Iterator[int]:
    with suppress(FileNotFoundError):
        for name in os.listdir("/proc"):  # noqa: PTH208  asked at the end of each conversation, names are enough
            if name.isdigit():
                with suppress(OSError), open(f"/proc/{name}/environ", "rb", buffering=0) as environment:  # noqa: PTH123
                    if mark in environment.readall():
                        yield int(name)
