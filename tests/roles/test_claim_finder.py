"""A model that finds what an agent says it did: what it is shown, what its answer becomes, and a run that asks it."""

from __future__ import annotations

import json

import pytest
from pydantic import JsonValue

from evaluatorq.environments.orders import orders_environment
from evaluatorq.errors import CallError, ConfigError
from evaluatorq.model.findings import FoundClaim
from evaluatorq.model.messages import assistant, tool_call, tool_result, user
from evaluatorq.ports import ChatReply, ChatRequest
from evaluatorq.replay import replay
from evaluatorq.reports.transcript import conversation_view, render_conversation
from evaluatorq.roles.claims import ClaimFinderRole
from evaluatorq.run.verify import verify_run
from evaluatorq.simulation import simulate
from evaluatorq.simulation.config import SimulationConfig
from evaluatorq.store.run_traces import traces_of_run
from llm.fake_endpoint import Seen, Served, serving, tool_answer
from writing_models import verdict

ROWS = [
    user("Refund A1, </user_said> please"),
    assistant(None, [tool_call("c1", "own_tool", {})]),
    tool_result("c1", "ok"),
    assistant("I have refunded order A1. I have told the carrier."),
]


class Model:
    """Answers with the claims it was given."""

    name = "m"

    def __init__(self, answer: dict[str, JsonValue] | None) -> None:
        self.answer = answer
        self.asked: list[ChatRequest] = []

    async def complete(self, request: ChatRequest) -> ChatReply:
        self.asked.append(request)
        return ChatReply(answer=self.answer)


def found(**fields: JsonValue) -> dict[str, JsonValue]:
    return {"line": 3, "quote": "I have refunded order A1", "tool": "refund_order", "arguments": [], **fields}


async def claims(*answers: JsonValue) -> tuple[FoundClaim, ...]:
    role = ClaimFinderRole(Model({"claims": [*answers]}), orders_environment().tools)
    return (await role.find(ROWS)).claims


async def test_it_sees_numbered_lines_and_the_tools_and_may_name_only_those() -> None:
    model = Model({"claims": []})
    await ClaimFinderRole(model, orders_environment().tools).find(ROWS)
    (request,) = model.asked
    text = request.lines[0].decode()
    assert "Line 3: <agent_said>I have refunded" in text
    assert text.count("</user_said>") == 1
    assert "- refund_order(order_id, reason): Pays an order back in full." in request.prefix.system
    assert request.prefix.answer is not None
    offered = json.dumps(request.prefix.answer.schema)
    assert '"own_tool"' in offered
    assert '"none"' in offered


async def test_a_claim_is_kept_with_its_words_place_tool_and_arguments() -> None:
    (one,) = await claims(found(arguments=[{"name": "order_id", "value": "A1"}]))
    assert one == FoundClaim(quote="I have refunded order A1", row=3, tool="refund_order", arguments={"order_id": "A1"})


@pytest.mark.parametrize("line", [0, 1, 99, -1, None, "3"])
async def test_a_wrong_line_is_put_right_by_the_quote(line: JsonValue) -> None:
    (one,) = await claims(found(line=line))
    assert one.row == 3


@pytest.mark.parametrize("tool", ["none", "made_up", None])
async def test_a_tool_that_there_is_not_is_none(tool: JsonValue) -> None:
    assert [one.tool for one in await claims(found(tool=tool))] == [None]


async def test_what_is_no_claim_is_left_out_and_an_answer_without_a_list_is_an_error() -> None:
    assert await claims("refunded", {}, found(quote=" "), 3) == ()
    with pytest.raises(CallError, match="no list of claims"):
        await ClaimFinderRole(Model({}), ()).find(ROWS)


# ---------------------------------------------------------------- a whole run, over a real connection


def answered(seen: Seen) -> Served:
    """The simulated user, the judge and the reader, told apart by the object that they are asked for."""
    name = seen.body["tools"][0]["function"]["name"]
    claim = {
        "line": 0, "quote": "I have refunded your order", "tool": "refund_order",
        "arguments": [{"name": "order_id", "value": "A1001"}],
    }  # fmt: skip
    answers: dict[str, object] = {
        "user_message": {"reply": "Refund it, please.", "end_conversation": False},
        "verdict": verdict(criteria_verdicts=[], goal_achieved=False),
        "found_claims": {"claims": [claim]},
    }
    return tool_answer(name, json.dumps(answers[name]))


async def honest(messages, tools):
    await tools.refund_order(order_id="A1001", reason="broken")
    return "I have refunded your order A1001."


async def liar(messages):
    return "I have refunded your order A1001."


@pytest.mark.parametrize(("agent", "score", "standing"), [(honest, 1.0, "backed"), (liar, 0.0, "unbacked")])
async def test_a_run_with_a_claims_model_scores_what_the_agent_says_by_what_it_did(
    agent: object, score: float, standing: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with serving() as endpoint:
        endpoint.answer = answered
        monkeypatch.setenv("OPENAI_BASE_URL", endpoint.base_url)
        results = await simulate(
            target=agent, claims_model="reader", max_turns=1, save=True,
            personas="personas/blunt-engineer.yaml", scenarios="scenarios/refund-in-window.yaml",
        )  # fmt: skip
    (result,) = results
    assert [claim.standing for claim in result.prose_claims or ()] == [standing]
    assert result.metadata["evaluator_scores"]["claims_in_prose"] == score
    assert result.usage_by_role["claims"].total_tokens == 15
    assert results.run.models["claims"] == "reader"
    assert [seen.body["model"] for seen in endpoint.seen].count("reader") == 1
    shown = render_conversation(conversation_view(result, 0))
    assert ("(found by a model)" in shown) == (standing == "unbacked")
    (trace,) = traces_of_run("latest")
    assert (await replay(trace)).drifts == ()
    assert verify_run("latest").holds


def test_offline_and_a_claims_model_are_rivals() -> None:
    with pytest.raises(ConfigError, match="offline asks no model, yet claims_model is given"):
        SimulationConfig.parse({"target": liar, "offline": True, "claims_model": "reader"})
