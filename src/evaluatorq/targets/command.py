"""A command as an agent: one process for each conversation, JSON lines in and out.

In goes ``{"messages": [...], "thread_id": "..."}``, one line for each turn; out comes one line: a string,
``{"text": ...}`` or whatever an HTTP endpoint might answer, ``{"error": ...}`` included, with ``report`` (a
``TurnReport``) and ``assessment`` beside it where the agent has them. A call that was given up leaves a process whose
next line would be the wrong answer, so it is ended.
"""

from __future__ import annotations

import os
import shlex
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar, Literal

import anyio
from pydantic import Field, field_validator

from evaluatorq.errors import CallError, ConfigError
from evaluatorq.llm.encode import encode_json
from evaluatorq.model.messages import Message
from evaluatorq.model.rules import Misfit
from evaluatorq.ports import Seat, TargetReply, ToolSpec
from evaluatorq.targets.bodies import Places, parsed, reply_from_json
from evaluatorq.targets.paths import JsonPath
from evaluatorq.targets.processes import LineProcess
from evaluatorq.targets.replies import reply_of
from evaluatorq.targets.templates import TargetSpec, expanded, request_values
from evaluatorq.toolset import TOOLS_URL

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
        try:
            _check_program(spec.command[0], Path(spec.cwd or "."))
        except ConfigError as error:
            raise Misfit.at(str(error), "command") from None
        self._env = {name: expanded(value, f"the command's {name}", "env", name)[0] for name, value in spec.env.items()}

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
        self._running: LineProcess | None = None
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
            line = await running.ask(encode_json(request))
        except BaseException:
            await self._stop(gently=False)
            raise
        self._answered = True
        return reply_of(
            reply_from_json(parsed(line, f"{self._where} (standard output)"), _PLACES, self._where), messages
        )

    async def _start(self) -> LineProcess:
        if self.stateful and self._answered:
            raise CallError(
                "target_error", f"{self._where} ended, and what it remembered is lost with it", component="target"
            )
        self._running = await LineProcess.start(self._spec.command, self._spec.cwd, self._env, self._where)
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


def _check_program(program: str, folder: Path) -> None:
    """A bare name is looked for on ``PATH``, a path from the folder that the process starts in."""
    place = folder / program
    if shutil.which(program if os.path.basename(program) == program else place.absolute()) is not None:  # noqa: PTH119
        return
    if not place.exists():
        raise ConfigError(f"the command {program!r} is not found; give its path or put it on PATH")
    if place.is_dir():
        raise ConfigError(f"the command {program!r} is a folder, not a program")
    if os.access(place, os.X_OK):
        raise ConfigError(f"the command {program!r} is in {folder.resolve()}, not on PATH; write ./{program}")
    raise ConfigError(f"the command {program!r} may not be executed; name what runs it before it, or chmod +x it")
