"""Commands that misbehave: each ends in one sentence about the agent, and leaves no process, handle or thread."""

from __future__ import annotations

import stat
import sys
import threading
from pathlib import Path

import anyio
import pytest
from started import becomes_true, is_running, one_failure, targets
from talking import ask, failure, seat

from evaluatorq.errors import ConfigError
from evaluatorq.model.messages import user
from evaluatorq.targets.command import CommandTargets, CommandTargetSpec
from evaluatorq.targets.processes import MARK

ON_LINUX = pytest.mark.skipif(sys.platform != "linux", reason="only Linux shows the environment of other processes")
LEAVES = """
    import json, os, subprocess, sys
    asked = json.loads(input())["messages"][-1]["content"]
    streams = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.DEVNULL) if "closed" in asked else {}
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"], start_new_session=True, **streams)
    with open("child", "w") as file:
        file.write(str(child.pid))
    os.rename("child", "pid")
"""


@pytest.mark.parametrize(
    ("script", "code", "says"),
    [
        ("import os, time; os.close(0); time.sleep(60)", "target_error", "closed its standard input before it"),
        ("import os, signal; os.kill(os.getpid(), signal.SIGKILL)", "target_error", "was ended by SIGKILL before"),
        ("import sys; input(); sys.stdout.buffer.write(b'\\x00\\xff\\n')", "target_protocol", "did not answer JSON"),
        ("import sys; input()\nwhile sys.stdout.write('x' * 9999): pass", "target_protocol", "than 8,000,000 bytes"),
        ("input(); print('[' * 1_000_000)", "target_protocol", "nested too deeply"),
    ],
)  # fmt: skip
async def test_each_is_one_sentence_about_the_agent(tmp_path: Path, script: str, code: str, says: str) -> None:
    error = await one_failure(targets(tmp_path, script)(seat()), user("x" * 300_000))
    assert (error.code, error.component) == (code, "target")
    assert says in error.message


@pytest.mark.parametrize("reads", ["", "sys.stdin.read(300_000); "])
async def test_one_that_answers_and_ends_has_answered(tmp_path: Path, reads: str) -> None:
    made = targets(tmp_path, f"import sys; {reads}print('\"done\"')")
    for _ in range(5):
        target = made(seat())
        assert (await ask(target, "x" * 300_000)).messages[0].text == "done"
        await target.aclose()


@pytest.mark.parametrize("line", ["'\"two\"'", "'\"two\"\\n' * 100_000"])
async def test_a_line_too_many_is_not_taken_for_the_next_answer(tmp_path: Path, line: str) -> None:
    script = f"import sys\nfor line in sys.stdin: sys.stdout.write('\"one\"\\n' + {line} + '\\n'); sys.stdout.flush()"
    target = targets(tmp_path, script)(seat())
    assert (await ask(target, "hi")).messages[0].text == "one"
    error = await one_failure(target, "more")
    assert (error.code, error.component) == ("target_protocol", "target")
    assert "answered more than one line to one question" in error.message


async def test_blank_lines_after_an_answer_are_no_answer(tmp_path: Path) -> None:
    target = targets(tmp_path, "for turn in range(3): input(); print(f'\"{turn}\"\\n\\n  \\n')")(seat())
    assert [(await ask(target, "hi")).messages[0].text for _ in range(3)] == ["0", "1", "2"]
    await target.aclose()


# ---------------------------------------------------------------- standard error


async def test_of_a_flood_on_standard_error_the_end_is_kept(tmp_path: Path) -> None:
    script = (
        "import os; input()\nfor _ in range(500): os.write(2, b'x' * 65536)\nos.write(2, b'\\nthe end\\n'); os._exit(7)"
    )
    error = await one_failure(targets(tmp_path, script)(seat()))
    assert error.message.endswith("exited with code 7 before it answered; its last words on standard error: the end")
    assert len(error.raw or "") <= 2_000


async def test_a_process_may_write_to_standard_error_while_nobody_asks(tmp_path: Path) -> None:
    script = f"""
        import os
        input(); print('"one"')
        for _ in range(50): os.write(2, b'x' * 65536)
        os.mkdir({str(tmp_path / "written")!r})
        input(); print('"two"')
    """
    target = targets(tmp_path, script)(seat())
    await ask(target, "hi")
    await becomes_true((tmp_path / "written").is_dir)
    assert (await ask(target, "more")).messages[0].text == "two"
    await target.aclose()


# ---------------------------------------------------------------- what it started


async def test_a_process_that_ends_is_told_though_its_child_holds_its_streams(tmp_path: Path) -> None:
    target = targets(tmp_path, LEAVES + "    sys.exit(5)", cwd=str(tmp_path))(seat())
    error = await failure(target, "leave")
    assert "exited with code 5 before it answered" in error.message
    if sys.platform == "linux":
        await becomes_true(lambda: not is_running(int((tmp_path / "pid").read_text())))


@ON_LINUX
@pytest.mark.parametrize("how", ["leave", "leave with closed streams"])
async def test_what_left_the_group_ends_with_the_conversation(tmp_path: Path, how: str) -> None:
    target = targets(tmp_path, LEAVES + "    print('\"left\"'); input()", cwd=str(tmp_path))(seat())
    await ask(target, how)
    pid = int((tmp_path / "pid").read_text())
    assert is_running(pid)
    await target.aclose()
    await becomes_true(lambda: not is_running(pid))


@ON_LINUX
async def test_what_lost_its_parent_ends_with_the_conversation(tmp_path: Path) -> None:
    script = """
        import os, time
        input()
        if not os.fork():
            os.setsid()
            if not os.fork():
                for number in range(3): os.close(number)
                with open("child", "w") as file: file.write(str(os.getpid()))
                os.rename("child", "pid")
                time.sleep(600)
            os._exit(0)
        os.wait()
        print('"left"')
    """
    target = targets(tmp_path, script, cwd=str(tmp_path))(seat())
    await ask(target, "hi")
    await becomes_true((tmp_path / "pid").exists)
    pid = int((tmp_path / "pid").read_text())
    assert is_running(pid)
    await target.aclose()
    await becomes_true(lambda: not is_running(pid))


async def test_a_mark_from_outside_is_handed_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(MARK, "/outer")
    made = targets(tmp_path, f"import json, os; input(); print(json.dumps(os.environ[{MARK!r}]))")
    one, two = made(seat()), made(seat())
    marks = {(await ask(target, "hi")).messages[0].text for target in (one, two)}
    assert len(marks) == 2
    assert all(mark.startswith("/outer/") for mark in marks)
    await one.aclose()
    await two.aclose()


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
@ON_LINUX
def test_many_conversations_leave_no_process_handle_or_listener(backend: str) -> None:
    command = ["sh", "-c", "while read -r line; do echo noise >&2; echo '\"hi\"'; done"]
    made = CommandTargets(CommandTargetSpec.parse({"command": command}))

    def held() -> tuple[int, int, str]:
        children = Path(f"/proc/self/task/{threading.get_native_id()}/children").read_text()
        listeners = sum("standard error" in thread.name for thread in threading.enumerate())
        return sum(1 for _ in Path("/proc/self/fd").iterdir()), listeners, children

    async def converse() -> None:
        target = made(seat())
        await ask(target, "hi")
        await target.aclose()

    async def several() -> None:
        async with anyio.create_task_group() as group:
            for _ in range(10):
                group.start_soon(converse)

    async def main() -> None:
        await several()
        before = held()
        for _ in range(5):
            await several()
        await becomes_true(lambda: held() == before)

    anyio.run(main, backend=backend)


# ---------------------------------------------------------------- what cannot be started


def script_at(path: Path, text: str, *, mode: int = stat.S_IRWXU) -> str:
    path.write_text(text)
    path.chmod(mode)
    return str(path)


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("./plain", "the command './plain' may not be executed; name what runs it before it, or chmod [+]x it"),
        ("./folder", "the command './folder' is a folder, not a program"),
        ("runs-here", "the command 'runs-here' is in .*, not on PATH; write ./runs-here"),
        ("./nothing", "the command './nothing' is not found"),
    ],
)
def test_a_command_that_is_no_program_is_refused_before_the_run(tmp_path: Path, name: str, says: str) -> None:
    script_at(tmp_path / "plain", "#!/bin/sh\n", mode=stat.S_IRUSR)
    script_at(tmp_path / "runs-here", "#!/bin/sh\n")
    (tmp_path / "folder").mkdir()
    with pytest.raises(ConfigError, match=says):
        CommandTargets(CommandTargetSpec.parse({"command": [name], "cwd": str(tmp_path)}))


def test_a_program_may_be_named_from_the_present_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script_at(tmp_path / "agent", "#!/bin/sh\n")
    monkeypatch.chdir(tmp_path)
    for place in ({}, {"cwd": "."}):
        assert CommandTargets(CommandTargetSpec.parse({"command": ["./agent"], **place})).name


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("#!/no/such/interpreter\n", "what its first line (#!) names to run it is not there"),
        ("\x01 neither", "it is neither a program nor a script whose first line (#!) names what runs it"),
    ],
)
async def test_a_program_that_cannot_be_started_is_told_with_the_reason(tmp_path: Path, text: str, says: str) -> None:
    made = CommandTargets(CommandTargetSpec.parse({"command": [script_at(tmp_path / "agent", text)]}))
    error = await one_failure(made(seat()))
    assert (error.code, error.component, error.retryable) == ("target_error", "target", False)
    assert error.message.endswith(f"could not be started: {says}")


async def test_no_half_of_a_credential_is_among_the_last_words(tmp_path: Path) -> None:
    key = "sk-planted0123456789planted"
    for before in (80, 1_985):
        script = f"import sys; print('{key} ' + 'word ' * {before // 5}, file=sys.stderr); sys.exit(3)"
        error = await one_failure(targets(tmp_path, script)(seat()))
        assert "exited with code 3" in error.message
        assert "planted" not in f"{error.message} {error.raw}"
