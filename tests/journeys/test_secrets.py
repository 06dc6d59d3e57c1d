"""Credentials reach no file, no log and no message, whatever fails; personal data goes where the rules say: nowhere."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from mock_server.served import MockEndpoint, serving
from mock_server.shell import MODELS, evaluatorq, saved_run, write_cases

KEY = "sk-planted0key0123456789"
PASSWORD, QUERY, HEADER, VARIABLE = "planted0password", "planted0query", "planted0header", "planted0variable"
PLANTED = (KEY, PASSWORD, QUERY, HEADER, VARIABLE)
FAULTS: list[list[dict[str, object]]] = [
    [],
    [{"role": "user", "kind": "500"}],
    [{"role": "judge", "kind": "400"}],
    [{"role": "target", "kind": "503"}],
    [{"role": "judge", "kind": "401"}],
    [{"role": "target", "kind": "quota"}],
    [{"role": "user", "kind": "malformed"}],
]
AGENT = """
from evaluatorq.model.messages import assistant, tool_call, tool_result
from evaluatorq.ports import Seat, TargetReply


class Desk:
    stateful = False

    async def respond(self, messages, *, thread_id):
        if len(messages) > 1:
            raise RuntimeError("could not reach https://svc:planted0password@db.example/x with token=planted0query")
        arguments = {"user": "pat", "password": "planted0password", "note": "Bearer planted0header"}
        return TargetReply((
            assistant(None, [tool_call("c1", "login", arguments)]),
            tool_result("c1", '{"api_key": "planted0variable", "status": "ok"}'),
            assistant("You are logged in with api_key=planted0query and key sk-planted0key0123456789."),
        ))


def agent(seat: Seat):
    return Desk()
"""


@pytest.fixture(scope="module")
def endpoint() -> Iterator[MockEndpoint]:
    with serving() as mock:
        yield mock


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_cases(tmp_path / "cases.jsonl", 2, criteria=1)
    return tmp_path


def everything_about(folder: Path, *ran: object) -> str:
    """All that was written and said, and all that is said when somebody asks later."""
    files = [path for path in (folder / ".evaluatorq").rglob("*") if path.is_file()]
    later = [evaluatorq(folder, "sim", *words) for words in (("runs", "--json"), ("show", "latest", "0", "--full"))]
    return "\n".join([path.read_text() for path in files] + [str(done) for done in (*ran, *later)])


def check_none(text: str) -> None:
    for secret in PLANTED:
        at = text.find(secret)
        assert at < 0, text[max(0, at - 200) : at + 60]


@pytest.mark.parametrize(
    "faults", FAULTS, ids=lambda faults: f"{faults[0]['role']}-{faults[0]['kind']}" if faults else "none"
)
def test_the_credentials_of_models_stay_where_they_came_from(
    endpoint: MockEndpoint, folder: Path, faults: list[dict[str, object]]
) -> None:
    endpoint.set(faults=faults, echo_header="authorization")
    url = endpoint.url.replace("http://", f"http://pat:{PASSWORD}@") + f"?api-key={QUERY}"
    ran = evaluatorq(
        folder, "sim", "simulate", "-vv", "-i", "cases.jsonl", "--openai-model", "mock-target", *MODELS,
        "--llm-config", '{"retry_count": 1}', "--max-target-retries", "1",
        endpoint=endpoint, OPENAI_BASE_URL=url, OPENAI_API_KEY=KEY, EQ_DEBUG="1",
    )  # fmt: skip
    assert ran.returncode == (1 if faults else 0), ran.stderr
    check_none(everything_about(folder, ran.stdout, ran.stderr))


@pytest.mark.parametrize("kind", [None, "500", "401", "malformed"])
def test_the_credentials_of_an_agent_over_http_stay_where_they_came_from(
    endpoint: MockEndpoint, folder: Path, kind: str | None
) -> None:
    faults = [] if kind is None else [{"role": "target", "kind": kind}]
    endpoint.set(faults=faults, echo_header="x-service")
    target = {
        "url": endpoint.agent_url.replace("http://", f"http://pat:{PASSWORD}@") + f"?token={QUERY}",
        "headers": {"X-Api-Key": HEADER, "X-Service": "${TARGET_THING}"},
        "reply": "reply",
    }
    (folder / "options.json").write_text(json.dumps({"target": target}))
    ran = evaluatorq(
        folder, "sim", "simulate", "-vv", "-i", "cases.jsonl", "--config", "options.json", *MODELS,
        "--max-target-retries", "1",
        endpoint=endpoint, OPENAI_API_KEY=KEY, TARGET_THING=VARIABLE, EQ_DEBUG="1",
    )  # fmt: skip
    assert ran.returncode == (0 if kind is None else 1), ran.stderr
    check_none(everything_about(folder, ran.stdout, ran.stderr))


def test_credentials_that_an_agent_uses_shows_or_raises_are_hidden(folder: Path) -> None:
    (folder / "desk.py").write_text(AGENT)
    words = ("sim", "simulate", "-vv", "--offline", "--target", "desk:agent", "-i", "cases.jsonl", "--json")
    ran = evaluatorq(folder, *words, EQ_DEBUG="1")
    assert ran.returncode == 1
    check_none(everything_about(folder, ran.stdout, ran.stderr))
    results = saved_run(folder)["results"]
    assert isinstance(results, list)
    rows = results[0]["messages"]
    assert json.loads(rows[1]["tool_calls"][0]["function"]["arguments"])["user"] == "pat"
    assert "You are logged in with api_key=[hidden]" in rows[3]["content"]
    assert "could not reach https://[hidden]@db.example/x" in results[0]["reason"]


def test_personal_data_is_written_nowhere_and_called_the_same_everywhere(folder: Path) -> None:
    say = "async def agent(messages):\n    return 'Mail jane@example.com or call +49 30 1234567, order ORD-77.'\n"
    (folder / "desk.py").write_text(say)
    words = ("sim", "simulate", "-v", "--offline", "--target", "desk:agent", "-i", "cases.jsonl", "--max-turns", "2")
    for _ in range(2):
        ran = evaluatorq(folder, *words, "--redact", "email", "phone", r"order=ORD-\d+")
        assert ran.returncode == 0, ran.stderr
    text = everything_about(folder, ran.stdout, ran.stderr)
    for private in ("jane@", "1234567", "ORD-77"):
        assert private not in text
    runs = [json.loads(path.read_bytes()) for path in (folder / ".evaluatorq" / "sim-runs").glob("*.json")]
    said = {
        row["content"]
        for run in runs
        for result in run["results"]
        for row in result["messages"]
        if row["role"] == "assistant"
    }
    assert len(said) == 1, "one value, one pseudonym, in every run of this store"


def test_a_rule_that_is_none_is_bad_usage(folder: Path) -> None:
    ran = evaluatorq(folder, "sim", "simulate", "--offline", "--redact", "e-mail")
    assert ran.returncode == 2
    assert ran.stderr.startswith("Error: redact: 'e-mail' is no rule; there is email,")
    assert not (folder / ".evaluatorq").exists()
