"""What the tests of commands share: an agent written as a script, and whether a process still runs."""

from __future__ import annotations

import os
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path

import anyio
from talking import failure

from evaluatorq.errors import CallError
from evaluatorq.model.messages import Message
from evaluatorq.targets.command import CommandTarget, CommandTargets, CommandTargetSpec


def targets(tmp_path: Path, script: str, **options: object) -> CommandTargets:
    path = tmp_path / "agent.py"
    path.write_text(textwrap.dedent(script))
    return CommandTargets(CommandTargetSpec.parse({"command": [sys.executable, "-u", str(path)], **options}))


async def one_failure(target: CommandTarget, *messages: Message | str) -> CallError:
    try:
        return await failure(target, *messages)
    finally:
        await target.aclose()


def is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    if not Path("/proc").is_dir():
        return True
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


async def becomes_true(condition: Callable[[], bool]) -> None:
    with anyio.fail_after(30):
        while not condition():  # noqa: ASYNC110  another process makes it true
            await anyio.sleep(0.01)
