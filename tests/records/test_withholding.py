"""Whole texts of a side or a tool are never written; digests, lengths, verdicts and typed facts are."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from evaluatorq.environments.orders import Order, OrdersWorld, orders_environment
from evaluatorq.errors import CallError, ConfigError
from evaluatorq.model.assessments import Assessment
from evaluatorq.model.belief import BeliefUpdate
from evaluatorq.model.cases import Criterion
from evaluatorq.model.messages import Message, assistant, tool_call
from evaluatorq.model.observation import Discarded, TurnReport
from evaluatorq.model.results import SimulationResult
from evaluatorq.model.usage import NO_USAGE
from evaluatorq.ports import BeliefReply, Score, TargetReply
from evaluatorq.records.redaction import Redactor, parse_rules, scopes_in
from evaluatorq.records.withholding import WITHHELD, Withholding
from evaluatorq.run.engine import RunOptions, run_plan
from evaluatorq.store.case_rules import scenario_rule
from evaluatorq.store.paths import get_sim_runs_dir
from evaluatorq.store.run_traces import traces_of_run
from evaluatorq.testing import a_datapoint, a_plan, a_scenario, crew_of, verdict

USER = "My kettle exploded in the kitchen"
AGENT = "I am sorry about the kettle, truly"
THOUGHT = "the customer sounds upset"
ARGUMENT = "kettle exploded"
ANSWER = "Blue kettle"


def world() -> object:
    order = Order(
        customer="Kim", email="kim@example.com", item=ANSWER, total=9, status="delivered", ordered_on="2026-01-01"
    )
    return orders_environment(OrdersWorld(orders={"A1": order}))


async def written(
    scopes: list[str], scenario_scopes: list[str] | None = None, **crew: object
) -> tuple[str, SimulationResult]:
    """Everything that a run wrote, and its one result."""
    criteria = [Criterion(description="says sorry", type="must_happen")]
    scenario = a_scenario(
        criteria=criteria, redact=scenario_scopes, goal_state=[{"pointer": "/orders/A1/item", "equals": ANSWER}]
    )
    lines = [
        TargetReply((assistant(None, [tool_call("c1", "find_order", {"order_id": "A1"})]),), reasoning=THOUGHT),
        TargetReply((assistant(None, [tool_call("c2", "refund_order", {"order_id": "A1", "reason": ARGUMENT})]),)),
        AGENT,
    ]
    parts: dict[str, object] = {
        "user": [USER], "target": lines, "judge": [verdict({0: "I am sorry about the kettle"}, stop=True, goal=True)],
        "environment": world, **crew,
    }  # fmt: skip
    redactor = Redactor(parse_rules(scopes), key=b"k", scopes=scopes_in(scopes))
    options = RunOptions(save=True, keep=True, redactor=redactor)
    outcome = await run_plan(a_plan(a_datapoint(scenario)), crew_of(**parts), options)
    files = [path for path in get_sim_runs_dir().rglob("*") if path.is_file()]
    return "".join(path.read_text(encoding="utf-8") for path in files), outcome.results[0]


@pytest.mark.parametrize(
    ("scopes", "gone", "kept"),
    [
        (["user"], [USER], [AGENT, THOUGHT, ARGUMENT]),
        (["agent"], [AGENT, THOUGHT], [USER]),
        (["tool:refund_order"], [ARGUMENT + '\\"}'], [USER, AGENT, '\\"customer\\":\\"Kim\\"']),
        (["tools"], ['\\"customer\\":\\"Kim\\"'], [USER, AGENT]),
    ],
)
async def test_a_side_or_a_tool_is_kept_back_from_everything_that_is_written(
    scopes: list[str], gone: list[str], kept: list[str]
) -> None:
    said, result = await written(scopes)
    assert [text for text in gone if text in said] == []
    assert [text for text in kept if text not in said] == []
    assert WITHHELD.search(said)
    assert result.goal_achieved is True
    assert [meta["passed"] for meta in result.metadata["criteria_meta"]] == [True]


async def test_a_scenario_may_keep_texts_back_by_itself() -> None:
    said, _ = await written([], ["user"])
    assert USER not in said
    assert AGENT in said


class Quoting:
    """An evaluator, and a detector, that quote what was said."""

    name, version = "quoting", "1"

    def evaluate(self, result: SimulationResult) -> Score:
        if result.messages[0].text.endswith("?"):
            raise ValueError(f"what is {result.messages[-1].text}")
        return Score(0.5, {"reason": f"it said: {result.messages[-1].text}", "first": result.messages[0].text})

    async def detect(self, messages: Sequence[Message]) -> BeliefReply:
        said = messages[-1].text
        belief = BeliefUpdate.model_validate({"slot": "item", "value": said, "evidence": said[:6], "row": 0})
        return BeliefReply((belief,), usage=NO_USAGE)


@pytest.mark.parametrize("said", [USER, f"{USER}?"])
async def test_what_notes_and_scores_quote_of_a_side_is_kept_back_with_it(said: str) -> None:
    quoting = Quoting()
    crew = {"user": [said], "evaluators": [quoting], "detector": lambda _seat: quoting}
    text, _ = await written(["user", "agent"], **crew)
    assert USER[:20] not in text
    assert f'"evidence":"{USER[:6]}"' not in text
    assert AGENT not in text
    assert '"what":"beliefs"' in text


REASON = "their fever worries me"


async def test_what_a_side_says_beside_the_transcript_is_kept_back_with_it() -> None:
    report = TurnReport(
        understanding={"units": [{"words": "a kettle blew up"}]},
        discarded_answers=(Discarded(code="bad", reason=REASON),),
    )
    line = TargetReply((assistant(AGENT),), report=report, assessment=Assessment(value=2, rationale=REASON))
    for scopes, gone, kept in (
        (["agent"], [REASON], ["a kettle blew up"]),
        (["user"], ["a kettle blew up"], [REASON]),
        (["user", "agent"], [REASON, "a kettle blew up"], []),
    ):
        said, result = await written(scopes, target=[line])
        text = said + result.model_dump_json()
        assert [word for word in gone if word in text] == []
        assert [word for word in kept if word not in text] == []
        assert result.observations[0].discard_codes() == ("bad",)
        for path in get_sim_runs_dir().rglob("*"):
            path.unlink() if path.is_file() else None


async def test_a_failure_of_a_side_that_is_kept_back_says_nothing_of_it() -> None:
    said, result = await written(["agent"], target=[CallError("target_error", f"cannot parse {AGENT}", raw=AGENT)])
    assert AGENT not in said
    assert result.failed_component == "target"


async def test_the_trace_of_such_a_conversation_says_so_and_how_its_calls_went() -> None:
    await written(["tools", "user"])
    (trace,) = traces_of_run("latest")
    assert "redacted" in {caveat.code for caveat in trace.caveats or ()}
    assert [step.outcome for step in trace.steps if step.kind == "tool"] == ["accepted", "accepted"]
    assert trace.outcome.labels.goal_state_reached is True


def test_equal_texts_stay_equal_and_keep_their_length() -> None:
    kept = Withholding(["user"], b"k")
    assert kept.text(USER) == kept.text(USER) != kept.text(AGENT)
    assert kept.text(USER).endswith(f":{len(USER)}]")
    assert kept.text(kept.text(USER)) == kept.text(USER)
    assert Withholding(["user"], b"other").text(USER) != kept.text(USER)


def test_a_scope_that_is_none_is_refused_with_the_ones_there_are() -> None:
    with pytest.raises(ConfigError, match="user, agent, tools, tool:NAME"):
        parse_rules(["users"])
    problems = list(scenario_rule({"name": "x", "goal": "y", "redact": ["judge"]}))
    assert [problem.reason for problem in problems] == ["is 'judge'; name user, agent, tools or tool:NAME"]
