"""From what a person names as the agent to targets, and one sentence for each name that leads nowhere."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from talking import ask, seat

from evaluatorq.errors import ConfigError
from evaluatorq.model.messages import Message
from evaluatorq.plugins import import_attribute
from evaluatorq.ports import Seat, Target
from evaluatorq.targets.callables import FunctionTargets
from evaluatorq.targets.command import CommandTargetSpec
from evaluatorq.targets.demo import demo_target
from evaluatorq.targets.http import HttpTargetSpec
from evaluatorq.targets.resolve import ResolvedTarget, resolve_target
from evaluatorq.targets.vercel import VercelAISdkTarget


class Counting:
    """Remembers, so that a shared one would be seen."""

    def __init__(self) -> None:
        self.history: list[str] = []

    async def respond(self, messages: Sequence[Message]) -> str:
        self.history.append(messages[-1].text)
        return str(len(self.history))


class Renewed(Counting):
    def new(self) -> Renewed:
        return Renewed()


def make_counting() -> Counting:
    return Counting()


class Shareable(Counting):
    shareable = True


def agent(messages: list[Message]) -> str:
    return "hello"


async def said(resolved: ResolvedTarget, times: int = 1) -> list[str]:
    target = resolved.factory(seat())
    return [(await ask(target, "hi")).messages[-1].text for _ in range(times)]


# ---------------------------------------------------------------- objects


@pytest.mark.parametrize("spec", [Counting, Renewed(), make_counting])
async def test_every_conversation_has_its_own_object(spec: object) -> None:
    resolved = resolve_target(spec, parallelism=8)
    assert [await said(resolved, 2) for _ in range(3)] == [["1", "2"]] * 3
    assert resolved.kind == "callback"


async def test_one_object_for_many_conversations_is_refused_unless_it_says_that_it_may_be_shared() -> None:
    with pytest.raises(
        ConfigError, match=r"Counting is one object for 2 conversations at once: pass its class .*shareable"
    ):
        resolve_target(Counting(), parallelism=2)
    assert await said(resolve_target(Counting(), parallelism=1)) == ["1"]
    shared = resolve_target(Shareable(), parallelism=2)
    assert [await said(shared), await said(shared)] == [["1"], ["2"]]


def test_what_is_no_agent_is_refused_with_what_would_be() -> None:
    class Mute:
        pass

    class Needy:
        def __init__(self, key: str) -> None:
            pass

        async def respond(self, messages: Sequence[Message]) -> str:
            return ""

    with pytest.raises(ConfigError, match=r"int is no agent: it cannot be called and has no respond\(messages\)"):
        resolve_target(42)
    with pytest.raises(ConfigError, match=r"Mute is a class without respond\(messages\)"):
        resolve_target(Mute)
    with pytest.raises(ConfigError, match=r"Needy\(\) needs key; pass a function without parameters that makes one"):
        resolve_target(Needy)


def test_a_factory_for_seats_and_a_resolved_target_pass_through() -> None:
    def seated(seat: Seat) -> Target:
        raise AssertionError

    assert resolve_target(seated).factory is seated
    resolved = resolve_target(agent)
    assert resolve_target(resolved) is resolved
    assert resolve_target(demo_target()).factory(seat()) is not None


# ---------------------------------------------------------------- what a run file says


def test_name_kind_type_and_model_say_what_was_called() -> None:
    class Modelled(Renewed):
        name = "support bot"
        model = "m-1"

    def facts(spec: object) -> tuple[str, str, str, str | None]:
        resolved = resolve_target(spec)
        return resolved.kind, resolved.name, resolved.type, resolved.model

    assert facts(agent) == ("callback", "agent", "function", None)
    assert facts(Counting) == ("callback", "Counting", "Counting", None)
    assert facts(Modelled()) == ("callback", "support bot", "Modelled", "m-1")
    assert facts("demo") == ("callback", "demo", "DemoAgent", None)
    assert facts("demo:flawed") == ("callback", "demo:flawed", "DemoAgent", None)
    assert facts("https://me:secret@host:99/chat?key=secret#x") == (
        "callback",
        "https://host:99/chat",
        "HttpTarget",
        None,
    )
    route = VercelAISdkTarget("https://me:secret@host/api/chat?key=secret")
    assert facts(route) == ("vercel", "https://host/api/chat", "VercelAISdkTarget", None)
    assert facts(f"command:{sys.executable} agent.py") == (
        "callback", f"{sys.executable} agent.py", "CommandTarget", None
    )  # fmt: skip


def test_descriptions_come_as_mappings_or_records() -> None:
    assert resolve_target({"url": "http://host/chat", "reply": "text"}).name == "http://host/chat"
    assert resolve_target(HttpTargetSpec(url="http://host/chat", usage="usage")).metered
    assert resolve_target(CommandTargetSpec(command=(sys.executable, "x"))).type == "CommandTarget"
    with pytest.raises(ConfigError, match="a target given as a mapping has a 'url' or a 'command'"):
        resolve_target({"reply": "text"})
    with pytest.raises(ConfigError, match="target: replly: is no key here in an endpoint; did you mean reply\\?"):
        resolve_target({"url": "http://host/chat", "replly": "text"})


# ---------------------------------------------------------------- text


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "resolve_support.py").write_text(
        "class Desk:\n    def answer(self, messages):\n        return 'from the desk'\n"
        "desk = Desk()\nnumber = 5\nasync def respond(messages):\n    return 'from the module'\n"
    )
    (tmp_path / "resolve_broken.py").write_text("import nowhere_to_be_found\n")
    (tmp_path / "resolve_raising.py").write_text("def f():\n    raise KeyError('setting')\nf()\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    return tmp_path


@pytest.mark.usefixtures("folder")
async def test_module_and_attribute_are_imported_from_the_present_folder() -> None:
    resolved = resolve_target("resolve_support:respond")
    assert (resolved.name, resolved.type) == ("resolve_support:respond", "function")
    assert await said(resolved) == ["from the module"]
    assert await said(resolve_target("resolve_support:desk.answer")) == ["from the desk"]
    assert import_attribute("resolve_support:number") == 5


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("resolve_suport:respond", "no module 'resolve_suport' here; did you mean resolve_support"),
        ("resolve_support:respnd", "resolve_support has no 'respnd'; did you mean respond?"),
        ("resolve_support:number", "resolve_support:number is no agent: it cannot be called"),
        ("resolve_support.py:respond", "names a file; write resolve_support:respond"),
        ("resolve_broken:respond", "cannot be imported: ModuleNotFoundError: No module named 'nowhere_to_be_found'"),
        ("resolve_raising:f", r"cannot be imported: KeyError: 'setting' \(.*resolve_raising.py:2 in f\)"),
        ("resolve_support:", "not of the form module:attribute"),
        ("support", "'support' names no agent; a target is 'module:attribute', 'http"),
        ("agent:refunds", "agent: is reserved for Orq targets"),
        ("deployment:refunds", "deployment: is reserved for Orq targets"),
        ("openai:gpt-x", "a model is the agent with openai_model \\(--openai-model gpt-x\\)"),
        ("demo:bad", "there is 'demo' and 'demo:flawed'"),
        ("http:///chat", "names a host"),
        ("command:no-such-program --x", "the command 'no-such-program' is not found"),
        ("command:python 'x", "cannot be split into words"),
        ("command:", "target: command"),
    ],
)
def test_a_name_that_leads_nowhere_is_one_clear_sentence(text: str, says: str) -> None:
    with pytest.raises(ConfigError, match=says) as caught:
        resolve_target(text)
    assert "\n" not in str(caught.value)


def test_naming_a_function_loads_no_http_client() -> None:
    script = (
        "import sys; from evaluatorq.targets.resolve import resolve_target; resolve_target(lambda m: 'x');"
        "print(sorted({'httpx', 'httptools', 'rich', 'yaml'} & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout == "[]\n"


async def test_a_factory_can_be_made_directly_from_a_function() -> None:
    assert (await ask(FunctionTargets(agent)(seat()), "hi")).messages[0].text == "hello"
