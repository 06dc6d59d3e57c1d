"""A command as an agent: one process for each conversation, and a sentence for each way it goes wrong."""

from __future__ import annotations

import sys
from pathlib import Path

import anyio
import pytest
from started import becomes_true, is_running, one_failure, targets
from talking import ask, failure, seat, shop

from evaluatorq.errors import ConfigError
from evaluatorq.model.messages import assistant, tool_call, user
from evaluatorq.targets.command import CommandTargetSpec
from evaluatorq.targets.conformance import check_target
from evaluatorq.targets.resolve import resolve_target

COUNTING = """
    import json, sys
    turn = 0
    for line in sys.stdin:
        turn += 1
        request = json.loads(line)
        print(json.dumps({"text": f"{turn} {request['thread_id']} {len(request['messages'])}"}), flush=True)
"""


async def test_each_conversation_has_a_process_of_its_own(tmp_path: Path) -> None:
    made = targets(tmp_path, COUNTING)
    one, two = made(seat()), made(seat())
    assert one.stateful
    said = [
        (await ask(target, *rows, thread_id=thread)).messages[0].text
        for target, thread, rows in (
            (one, "a", ["hi"]),
            (two, "b", ["hi"]),
            (one, "a", ["hi", assistant("x"), "more"]),
        )
    ]
    assert said == ["1 a 1", "1 b 1", "2 a 3"]
    await one.aclose()
    await two.aclose()


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_a_command_keeps_the_port_on_every_backend(tmp_path: Path, backend: str) -> None:
    assert len(anyio.run(check_target, targets(tmp_path, COUNTING), backend=backend)) == 2


@pytest.mark.parametrize(
    ("line", "text"),
    [
        ("'\"plain\"'", "plain"),
        ('\'{"message": {"content": "chat"}}\'', "chat"),
        ("'\\n\\n\"after blank lines\"'", "after blank lines"),
    ],
)
async def test_a_line_may_be_a_string_or_what_an_endpoint_would_answer(tmp_path: Path, line: str, text: str) -> None:
    target = targets(tmp_path, f"input(); print({line})")(seat())
    assert (await ask(target, "hi")).messages[0].text == text
    await target.aclose()


async def test_a_line_may_tell_what_was_understood_and_what_is_held(tmp_path: Path) -> None:
    script = """input(); print('{"text": "Hm.", "report": {"phase": "open"}, "assessment": {"value": "minor"}}')"""
    target = targets(tmp_path, script)(seat())
    reply = await ask(target, "hi")
    await target.aclose()
    assert reply.report is not None
    assert reply.assessment is not None
    assert (reply.report.phase, reply.assessment.value) == ("open", "minor")


async def test_the_environments_tools_are_offered_and_calls_may_wait_for_them(tmp_path: Path) -> None:
    script = """
        import json
        names = [tool["function"]["name"] for tool in json.loads(input())["tools"]]
        print(json.dumps({"tool_calls": [{"name": names[0], "arguments": {"order": "A1"}}]}))
    """
    target = targets(tmp_path, script)(seat(shop()))
    assert (await ask(target, "hi")).messages == (assistant(None, [tool_call("call_1", "refund", {"order": "A1"})]),)
    await target.aclose()


async def test_environment_variables_folder_and_history_are_as_described(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DESK_KEY", "k1")
    script = """
        import json, os
        rows = json.loads(input())["messages"]
        print(json.dumps(f"{os.environ['KEY']} {os.path.basename(os.getcwd())} {len(rows)} {'PATH' in os.environ}"))
    """
    (tmp_path / "inner").mkdir()
    options = {"env": {"KEY": "${DESK_KEY}"}, "cwd": str(tmp_path / "inner"), "history": "last"}
    target = targets(tmp_path, script, **options)(seat())
    assert (await ask(target, "one", assistant("x"), "two")).messages[0].text == "k1 inner 1 True"
    await target.aclose()


@pytest.mark.parametrize(
    ("script", "code", "says"),
    [
        ("import sys; input(); print('x\\nwho is sk-abcdefgh1234', file=sys.stderr); sys.exit(3)", "target_error",
         "exited with code 3 before it answered; its last words on standard error: who is [hidden]"),
        ("pass", "target_error", "exited with code 0 before it answered"),
        ("import os, time; input(); os.close(1); time.sleep(60)", "target_error", "closed its standard output"),
        ("input(); print('Loading it')", "target_protocol", "(standard output) did not answer JSON but 'Loading it'"),
        ("input(); print('{\"error\": \"no such order\"}')", "target_error", "answered with an error: no such order"),
        ("input(); print('{\"text\": \"\"}')", "empty_reply", "text is empty"),
        ("input(); print('null')", "target_protocol", "null, which holds no reply"),
        ("input(); print('x' * 8_100_000)", "target_protocol", "a line of more than 8,000,000 bytes"),
        ("input(); print('\"cut', end='')", "target_error", "exited with code 0 before it answered"),
    ],
)  # fmt: skip
async def test_each_way_to_fail_is_one_sentence(tmp_path: Path, script: str, code: str, says: str) -> None:
    error = await one_failure(targets(tmp_path, script)(seat()))
    assert (error.code, error.component) == (code, "target")
    assert says in error.message
    assert "sk-abcdefgh1234" not in error.message + (error.raw or "")
    assert "\n" not in error.message


async def test_a_process_that_ends_early_may_be_started_again_but_not_with_lost_memory(tmp_path: Path) -> None:
    script = "import json; input(); print('\"once\"')"
    remembering = targets(tmp_path, script)(seat())
    await ask(remembering, "hi")
    assert (await failure(remembering, "more")).retryable
    lost = await failure(remembering, "more")
    assert (lost.code, lost.retryable) == ("target_error", False)
    assert "what it remembered is lost" in lost.message
    stateless = targets(tmp_path, script, stateful=False)(seat())
    await ask(stateless, "hi")
    assert (await failure(stateless, "more")).retryable
    assert (await ask(stateless, "more")).messages[0].text == "once"
    await stateless.aclose()


async def test_a_late_answer_is_never_taken_for_the_next_one(tmp_path: Path) -> None:
    marks = tmp_path / "marks"
    marks.mkdir()
    script = f"""
        import json, pathlib, sys, time
        marks = pathlib.Path({str(marks)!r})
        for line in sys.stdin:
            question = json.loads(line)["messages"][-1]["content"]
            if question == "slow" and not (marks / "slow").exists():
                (marks / "slow").touch()
                time.sleep(60)
            print(json.dumps("about " + question), flush=True)
    """
    target = targets(tmp_path, script)(seat())
    async with anyio.create_task_group() as group:
        group.start_soon(ask, target, "slow")
        await becomes_true((marks / "slow").exists)
        group.cancel_scope.cancel()
    assert (await ask(target, "quick")).messages[0].text == "about quick"
    await target.aclose()


async def test_the_process_and_its_children_end_with_the_conversation(tmp_path: Path) -> None:
    script = """
        import json, os, signal, subprocess, sys
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
        for line in sys.stdin:
            print(json.dumps(f"{os.getpid()} {child.pid}"), flush=True)
        child.wait()
    """
    target = targets(tmp_path, script)(seat())
    pids = [int(pid) for pid in (await ask(target, "hi")).messages[0].text.split()]
    assert all(map(is_running, pids))
    await target.aclose()
    await target.aclose()
    await becomes_true(lambda: not any(map(is_running, pids)))


async def test_many_words_on_standard_error_do_not_block_the_process(tmp_path: Path) -> None:
    script = "import sys; input(); sys.stderr.write('x' * 1_000_000); print('\"done\"')"
    target = targets(tmp_path, script)(seat())
    assert (await ask(target, "hi")).messages[0].text == "done"
    await target.aclose()


async def test_a_long_transcript_is_written_whole(tmp_path: Path) -> None:
    script = "import json; rows = json.loads(input())['messages']; print(json.dumps(str(len(rows[0]['content']))))"
    target = targets(tmp_path, script)(seat())
    assert (await ask(target, user("x" * 500_000))).messages[0].text == "500000"
    await target.aclose()


def test_a_command_is_written_as_words_or_as_one_text() -> None:
    assert CommandTargetSpec.parse({"command": f"{sys.executable} -u 'my agent.py'"}).command[1:] == (
        "-u",
        "my agent.py",
    )
    resolved = resolve_target(f"command:{sys.executable} -u 'my agent.py'")
    assert (resolved.kind, resolved.type) == ("callback", "CommandTarget")
    with pytest.raises(ConfigError, match="the command 'no-such-program' is not found"):
        resolve_target({"command": "no-such-program"})
    with pytest.raises(ConfigError, match="the command's KEY needs the environment variable NO_SUCH_VARIABLE"):
        resolve_target({"command": sys.executable, "env": {"KEY": "${NO_SUCH_VARIABLE}"}})
