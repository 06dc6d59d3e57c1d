"""Cases over real sockets: endpoints with and without tools and schemas, and every token that the server counted."""

from __future__ import annotations

import json
import re

import pytest

from evaluatorq.errors import SimulationError
from evaluatorq.simulation.generation import generate
from evaluatorq.simulation.models import opened_models
from llm.fake_endpoint import FakeEndpoint, Seen, Served, completion, refusal, serving, tool_answer
from writing_models import persona, scenario

OPTIONS = {"agent_description": "Support of a shop.", "num_personas": 2, "num_scenarios": 3}


def written(seen: Seen) -> tuple[str, dict[str, object]]:
    """The name of the object that a request wants, and one that fits."""
    messages = seen.body["messages"]
    found = re.match(r"Make (\d+) (persona|scenario)", messages[-1]["content"])
    if found is None:
        return "user_message", {"reply": "My kettle is broken.", "end_conversation": False}
    count, write = int(found[1]), persona if found[2] == "persona" else scenario
    return f"{found[2]}s", {f"{found[2]}s": [write(f"Case {i}") for i in range(count)]}


def any_form(seen: Seen) -> Served:
    name, value = written(seen)
    return tool_answer(name, json.dumps(value))


def schema_only(seen: Seen) -> Served:
    if "tools" in seen.body:
        return refusal("tools")
    return completion({"content": json.dumps(written(seen)[1])})


def prose_only(seen: Seen) -> Served:
    for field in ("tools", "response_format"):
        if field in seen.body:
            return refusal(field)
    return completion({"content": f"Sure, here it is:\n```json\n{json.dumps(written(seen)[1])}\n```\nAnything else?"})


@pytest.fixture
def endpoint(monkeypatch: pytest.MonkeyPatch):
    with serving() as fake:
        monkeypatch.setenv("OPENAI_BASE_URL", fake.base_url)
        yield fake


@pytest.mark.parametrize("answer", [any_form, schema_only, prose_only])
async def test_cases_come_from_endpoints_of_every_ability_and_the_spend_is_the_servers(endpoint: FakeEndpoint, answer):
    charged = 0

    def counted(seen: Seen) -> Served:
        nonlocal charged
        served = answer(seen)
        charged += 15 if served.status == 200 else 0
        return served

    endpoint.answer = counted
    made = await generate(**OPTIONS)
    assert len(made) == 6
    assert {case.first_message for case in made} == {"My kettle is broken."}
    assert made.problems == []
    assert made.spent.total.total_tokens == charged
    assert made.spent.usage["first_messages"].calls == 6


LIMITED = {"message": "Slow down.", "type": "rate_limit_exceeded", "code": "rate_limit_exceeded"}
HALF = completion({"content": "{"}).body[:40]
FAULTS: dict[str, tuple[Served, bool]] = {
    "429": (Served(json.dumps({"error": LIMITED}).encode(), 429), False),
    "429 with seconds": (Served(json.dumps({"error": LIMITED}).encode(), 429, {"retry-after": "0.05"}), False),
    "500": (Served(b"{}", 500), False),
    "503": (Served(b"busy", 503), False),
    "hang": (Served(hang=True), True),
    "dropped": (Served(drop=True), True),
    "cut body": (Served(HALF, cut=True), True),
    "malformed JSON": (Served(HALF), True),
}
"""What a request meets, and whether its cost is then unknown."""


@pytest.mark.parametrize("fault", FAULTS)
async def test_a_fault_that_passes_costs_no_case_and_is_on_the_bill(endpoint: FakeEndpoint, fault: str):
    served, is_unknown = FAULTS[fault]
    seen_before: set[str] = set()

    def first_fails(seen: Seen) -> Served:
        question = json.dumps(seen.body["messages"][1:])  # the first may say in which form to answer
        if question in seen_before:
            return any_form(seen)
        seen_before.add(question)
        return served

    endpoint.answer = first_fails
    made = await generate(**OPTIONS, llm_config={"timeout_ms": 700, "retry_count": 2})
    assert (len(made), made.problems) == (6, [])
    answered = len(endpoint.seen) - len(seen_before)
    assert made.spent.total.total_tokens == 15 * answered
    assert sum(usage.calls for usage in made.spent.usage.values()) == answered
    assert sum(made.spent.unread.values()) == (len(seen_before) if is_unknown else 0)


async def test_no_more_requests_are_under_way_than_was_said(endpoint: FakeEndpoint):
    endpoint.answer = any_form
    await generate(**{**OPTIONS, "num_scenarios": 5}, llm_parallelism=2)
    assert endpoint.most_at_once <= 2


async def test_a_refused_key_is_one_sentence(endpoint: FakeEndpoint):
    error = {"error": {"message": "Incorrect API key", "type": "invalid_request_error", "code": "invalid_api_key"}}
    endpoint.answer = lambda _seen: Served(json.dumps(error).encode(), 401)
    with pytest.raises(
        SimulationError, match=r"personas 1, 2 of 2 could not be made: .*the credentials were not accepted"
    ):
        await generate(**OPTIONS)


async def test_a_vendors_client_lends_its_address_and_key(endpoint: FakeEndpoint):
    class Client:
        base_url = endpoint.base_url
        api_key = "sk-of-the-client"

    async with opened_models(None, 1, Client()) as models:
        assert models.ours("m").name == "m"
    endpoint.answer = any_form
    await generate(**OPTIONS, generation_client=Client())
    assert {seen.headers["authorization"] for seen in endpoint.seen} == {"Bearer sk-of-the-client"}
