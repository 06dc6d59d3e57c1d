"""A command as an agent: one process for each conversation, JSON lines in and out.

In goes ``{"messages": [...], "thread_id": "..."}``, one line for each turn; out comes one line: a string,
``{"text": ...}`` or whatever an HTTP endpoint might answer, ``{"error": ...}`` included, with ``report`` (a
``TurnReport``) and ``assessment`` beside it where the agent has them. What the process writes to its
standard error is kept aside and quoted when it fails. A call that was given up leaves a process whose next line would
be the wrong answer, so it is ended.
"""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, ClassVar, Literal

import anyio
from anyio.abc import Process
from anyio.streams.buffered import BufferedByteReceiveStream
from pydantic import Field, field_validator

from evaluatorq.errors import CallError, ConfigError
from evaluatorq.llm.encode import encode_json
from evaluatorq.llm.errors import clean_message, clean_raw
from evaluatorq.model.messages import Message
from evaluatorq.ports import Seat, TargetReply, ToolSpec
from evaluatorq.targets.bodies import Places, parsed, reply_from_json
from evaluatorq.targets.parts import unfit
from evaluatorq.targets.paths import JsonPath
from evaluatorq.targets.replies import reply_of
from evaluatorq.targets.templates import TargetSpec, expanded, request_values
from evaluatorq.toolset import TOOLS_URL

MOST_BYTES = 8_000_000
GRACE_S = 1.0
_TAIL = 2_000
_MOST_SHOWN = 100
_PLACES = Places(report=JsonPath.parse("report"), assessment=JsonPath.parse("assessment"))


class CommandTargetSpec(TargetSpec):
    """How to start an agent's process. ``env`` is added to the present environment; its values may be ``${VARIABLES}``.

    ``stateful: false`` says that the process answers from the messages alone, so another may take its place.
    """

    noun: ClassVar[str] = "a command"

    command: tuple[str, ...] = Field(min_length=1)
    cwd: str | None = None
    env: dict[str, str] = Field(default_factory=dict)
    history: Literal["messages", "last"] = "messages"
    stateful: bool = True

    @field_validator("command", mode="before")
    @classmethod
    def _words(cls, value: object) -> object:
        try:
            return shlex.split(value) if isinstance(value, str) else value
        except ValueError as error:
            raise ValueError(f"is {value!r}, which cannot be split into words: {error}") from None

    @field_validator("cwd")
    @classmethod
    def _a_folder(cls, path: str | None) -> str | None:
        if path is not None and not Path(path).is_dir():
            raise ValueError(f"is {path!r}, and there is no such folder in {Path.cwd()}; name one, or leave it out")
        return path

    def make_targets(self, parallelism: int = 1) -> CommandTargets:  # noqa: ARG002  processes are not shared
        """The factory of targets for this command. Raises ``ConfigError`` when it cannot be found."""
        return CommandTargets(self)


class CommandTargets:
    """Makes a target, and with it a process, for each conversation."""

    type = "CommandTarget"
    metered = False

    def __init__(self, spec: CommandTargetSpec) -> None:
        self.spec = spec
        self.name = shlex.join(spec.command)
        program = spec.command[0]
        if shutil.which(program) is None and shutil.which(Path(spec.cwd or ".") / program) is None:
            raise ConfigError(f"the command {program!r} is not found; give its path or put it on PATH")
        self._env = {name: expanded(value, f"the command's {name}")[0] for name, value in spec.env.items()}

    def __call__(self, seat: Seat) -> CommandTarget:
        """The target of one conversation; its process starts with the first answer that is asked for."""
        tools = () if seat.environment is None else seat.environment.tools
        served = {} if seat.tools_url is None else {TOOLS_URL: seat.tools_url}
        return CommandTarget(self.spec, {**self._env, **served}, tools)


class CommandTarget:
    """One conversation with a process."""

    def __init__(self, spec: CommandTargetSpec, env: dict[str, str], tools: Sequence[ToolSpec] = ()) -> None:
        self.stateful = spec.stateful
        self._spec = spec
        self._env = env
        self._tools = tools
        self._where = f"The command {_shortened(shlex.join(spec.command))!r}"
        self._running: _Running | None = None
        self._answered = False

    async def respond(self, messages: Sequence[Message], *, thread_id: str) -> TargetReply:
        """The process's answer to one line of input."""
        running = self._running or await self._start()
        only_last = self._spec.history == "last"
        values = request_values(messages, thread_id=thread_id, session_id=None, tools=self._tools, only_last=only_last)
        request = {"messages": values["messages"], "thread_id": thread_id}
        if self._tools:
            request["tools"] = values["tools"]
        try:
            line = await running.ask(encode_json(request), self._where)
        except BaseException:
            await self._stop(gently=False)
            raise
        self._answered = True
        return reply_of(
            reply_from_json(parsed(line, f"{self._where} (standard output)"), _PLACES, self._where), messages
        )

    async def _start(self) -> _Running:
        if self.stateful and self._answered:
            raise CallError(
                "target_error", f"{self._where} ended, and what it remembered is lost with it", component="target"
            )
        self._running = await _Running.start(self._spec, self._env)
        return self._running

    async def aclose(self) -> None:
        """Ends the process and what it started."""
        await self._stop(gently=True)

    async def _stop(self, *, gently: bool) -> None:
        running, self._running = self._running, None
        if running is not None:
            with anyio.CancelScope(shield=True):
                await running.stop(gently=gently)


def _shortened(command: str) -> str:
    return command if len(command) <= _MOST_SHOWN else f"…{command[-_MOST_SHOWN:]}"


class _Running:
    """A started process, and where its standard error goes."""

    def __init__(self, process: Process, complaints: IO[bytes]) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self._process = process
        self._complaints = complaints
        self._input = process.stdin
        self._output = BufferedByteReceiveStream(process.stdout)

    @classmethod
    async def start(cls, spec: CommandTargetSpec, env: dict[str, str]) -> _Running:
        complaints = tempfile.TemporaryFile()  # noqa: SIM115  closed with the process
        try:
            process = await anyio.open_process(
                spec.command,
                stderr=complaints,
                cwd=spec.cwd,
                env={**os.environ, **env},
                start_new_session=True,
            )
        except OSError as error:
            complaints.close()
            raise CallError("target_error", f"The command could not be started: {error}", component="target") from error
        return cls(process, complaints)

    async def ask(self, line: bytes, where: str) -> bytes:
        """The next line of standard output that holds anything, after ``line`` was sent."""
        try:
            await self._input.send(line + b"\n")
            while True:
                answer = await self._output.receive_until(b"\n", MOST_BYTES)
                if answer.strip():
                    return answer
        except anyio.DelimiterNotFound:
            raise unfit(f"{where} answered a line of more than {MOST_BYTES:,} bytes.") from None
        except (anyio.IncompleteRead, anyio.EndOfStream, anyio.BrokenResourceError, anyio.ClosedResourceError):
            raise await self._gone(where) from None

    async def _gone(self, where: str) -> CallError:
        with anyio.move_on_after(GRACE_S):
            await self._process.wait()
        code = self._process.returncode
        how = "closed its standard output" if code is None else f"exited with code {code}"
        tail = self._tail()
        last = tail.rpartition("\n")[2][-_MOST_SHOWN:]
        said = f"; its last words on standard error: {last}" if last else ""
        return CallError(
            "target_error",
            clean_message(f"{where} {how} before it answered{said}"),
            retryable=True,
            component="target",
            raw=clean_raw(tail.encode()),
        )

    def _tail(self) -> str:
        self._complaints.seek(0, os.SEEK_END)
        self._complaints.seek(max(0, self._complaints.tell() - _TAIL))
        return self._complaints.read().decode("utf-8", "replace").strip()

    async def stop(self, *, gently: bool) -> None:
        """Closes standard input, waits a moment if ``gently``, then kills the process and its children."""
        with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError, OSError):
            await self._input.aclose()
        if gently:
            with anyio.move_on_after(GRACE_S):
                await self._process.wait()
        self._kill()
        await self._process.aclose()
        self._complaints.close()

    def _kill(self) -> None:
        with suppress(ProcessLookupError, PermissionError):
            if hasattr(os, "killpg"):
                os.killpg(self._process.pid, signal.SIGKILL)
            elif self._process.returncode is None:
                self._process.kill()
