"""Cases over real sockets: endpoints with and without tools and schemas, and every token that the server counted."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime
from email.utils import format_datetime

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


LIMITED = json.dumps({"error": {"message": "Slow down.", "type": "t", "code": "rate_limit_exceeded"}}).encode()
HALF = completion({"content": "{"}).body[:40]
AT_ONCE = format_datetime(datetime.now(UTC), usegmt=True)
FAULTS: dict[str, tuple[Served, str]] = {
    "429": (Served(LIMITED, 429), "free"),
    "429 with seconds": (Served(LIMITED, 429, {"retry-after": "0.05"}), "free"),
    "429 with a date": (Served(LIMITED, 429, {"retry-after": AT_ONCE}), "free"),
    "500": (Served(b"{}", 500), "free"),
    "503": (Served(b"busy", 503), "free"),
    "503 with seconds": (Served(b"busy", 503, {"retry-after": "0.05"}), "free"),
    "hang": (Served(hang=True), "unknown"),
    "slow body": (Served(completion().body, slow=True), "unknown"),
    "dropped": (Served(drop=True), "unknown"),
    "cut body": (Served(HALF, cut=True), "unknown"),
    "malformed JSON": (Served(HALF), "unknown"),
    "empty content": (completion({"content": ""}), "paid"),
}
"""What a request meets, and what that costs: nothing, nobody knows, or as much as an answer."""
LASTING: dict[str, tuple[Served, str]] = {
    "400": (Served(b'{"error": {"message": "No."}}', 400), "free"),
    "404": (Served(b'{"error": {"message": "No."}}', 404), "free"),
    "413": (Served(b"too long", 413), "free"),
    "401": (Served(b'{"error": {"message": "No."}}', 401), "free"),
}
CALLS = {"timeout_ms": 300, "retry_count": 2}
WISHES = {"generation": ("personas", "scenarios"), "first_messages": ("user_message",)}


@pytest.mark.parametrize("category", WISHES)
@pytest.mark.parametrize("fault", FAULTS)
async def test_a_fault_that_passes_costs_no_case_and_is_on_the_bill(endpoint: FakeEndpoint, fault: str, category: str):
    served, cost = FAULTS[fault]
    seen_before: set[str] = set()

    def first_fails(seen: Seen) -> Served:
        question = json.dumps(seen.body["messages"][1])  # the first may say in which form to answer
        if written(seen)[0] not in WISHES[category] or question in seen_before:
            return any_form(seen)
        seen_before.add(question)
        return served

    endpoint.answer = first_fails
    made = await generate(**OPTIONS, llm_config=CALLS)
    assert (len(made), made.problems) == (6, [])
    faults = len(seen_before)
    assert faults
    answered = len(endpoint.seen) - faults * (cost != "paid")
    assert made.spent.total.total_tokens == 15 * answered
    assert sum(usage.calls for usage in made.spent.usage.values()) == answered
    assert made.spent.unread == ({category: faults} if cost == "unknown" else {})


@pytest.mark.parametrize("fault", [*FAULTS, *LASTING])
async def test_a_fault_that_stays_where_cases_are_made_is_named_and_nothing_is_made(endpoint: FakeEndpoint, fault: str):
    endpoint.answer = lambda _seen: {**FAULTS, **LASTING}[fault][0]
    with pytest.raises(SimulationError, match=r"persona.* could not be made: \S+"):
        await generate(**OPTIONS, llm_config={**CALLS, "retry_count": 1})


@pytest.mark.parametrize("fault", [*FAULTS, *LASTING])
async def test_a_fault_that_stays_where_first_messages_are_made_is_named_and_the_cases_are_kept(
    endpoint: FakeEndpoint, fault: str
):
    served, cost = {**FAULTS, **LASTING}[fault]
    endpoint.answer = lambda seen: served if written(seen)[0] == "user_message" else any_form(seen)
    made = await generate(**OPTIONS, llm_config={**CALLS, "retry_count": 1})
    assert [case.first_message for case in made] == [""] * 6
    assert all("first message" in problem for problem in made.problems)
    faults = len(endpoint.seen) - 2
    assert made.spent.total.calls == 2 + faults * (cost == "paid")
    assert made.spent.unread == ({"first_messages": faults} if cost == "unknown" else {})


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
