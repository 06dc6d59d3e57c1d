"""The contract's table of endings, a row a case: what each ending means for every flag that a user reads."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import anyio
import pytest
from pydantic import JsonValue

from evaluatorq.errors import CallError
from evaluatorq.model.cases import Check, Criterion, StateCheck
from evaluatorq.model.judgments import CriteriaMeta
from evaluatorq.model.messages import Message, assistant, tool_call, tool_result
from evaluatorq.model.results import SimulationResult
from evaluatorq.model.runs import Limits
from evaluatorq.model.usage import NO_USAGE, Usage
from evaluatorq.ports import TargetReply, ToolSpec, ToolsReply, UserReply
from evaluatorq.run.crew import Crew
from evaluatorq.testing import ScriptedJudge, a_datapoint, a_scenario, converse, crew_of, verdict

HELP = "I will gladly help you with that"
CRITERIA = (
    Criterion(description="helps", type="must_happen"),
    Criterion(description="asks for the number", type="must_happen"),
    Criterion(description="is rude", type="must_not_happen"),
)
SEEN = {0: HELP, 1: False, 2: False}
TARGET_DOWN = CallError("server_error", "HTTP 500")
SILENT = CallError("empty_reply", "the simulated user said nothing")
JUDGE_DOWN = CallError("bad_verdict", "no verdict in the answer")


class BrokenTools:
    """An environment whose tools cannot run."""

    tools: tuple[ToolSpec, ...] = ()

    def __init__(self, state: JsonValue = None, *, broken: bool = True) -> None:
        self.state, self.broken = state, broken

    async def run(self, calls: object) -> ToolsReply:
        if self.broken:
            raise RuntimeError("the database is gone")
        return ToolsReply(tuple(tool_result(call.id, "ok") for call in calls))  # type: ignore[attr-defined]

    def snapshot(self) -> JsonValue:
        return self.state

    def restore(self, state: JsonValue) -> None:
        self.state = state


class Hanging:
    """A participant that never answers."""

    stateful = False

    async def respond(self, messages: object, *, thread_id: str) -> TargetReply:
        await anyio.sleep_forever()
        raise AssertionError

    async def speak(self, messages: object) -> UserReply:
        await anyio.sleep_forever()
        raise AssertionError


CALLS = TargetReply((assistant(None, [tool_call("t1", "refund", {})]),), usage=NO_USAGE)


@dataclass
class Row:
    """One ending: how it is brought about, and what must be read afterwards."""

    name: str
    crew: Crew
    terminated_by: str
    ended_by: str
    component: str | None = None
    turns: int = 1
    spoken: int = 2
    goal: tuple[bool, bool] = (False, True)
    states: str = "pass fail pass"
    limits: Limits = field(default_factory=lambda: Limits(max_turns=3))


ROWS = [
    Row(
        "the judge says finished",
        crew_of(target=[HELP], judge=[verdict(SEEN, stop=True, goal=True)]),
        "judge",
        "judge",
        goal=(True, True),
    ),
    Row(
        "a violation is seen and the policy is to stop",
        crew_of(
            target=["You are an utter fool, sir"], judge=[verdict({0: False, 1: False, 2: "You are an utter fool"})]
        ),
        "judge",
        "violation",
        states="fail fail fail",
        limits=Limits(max_turns=3, stop_on_violation=True),
    ),
    Row(
        "a violation is seen and the policy is to go on",
        crew_of(
            target=["You are an utter fool, sir", HELP],
            user=["a", "b"],
            judge=[
                verdict({0: False, 1: False, 2: "You are an utter fool"}),
                verdict({0: HELP, 1: False}, stop=True, goal=True),
            ],
        ),
        "judge",
        "judge",
        turns=2,
        spoken=4,
        goal=(True, True),
        states="pass fail fail",
    ),
    Row(
        "the user stops with words",
        crew_of(
            target=["Refund it?", HELP],
            user=["Refund", UserReply("Yes, go on.", stop=True, usage=NO_USAGE)],
            judge=[verdict({0: False, 1: False, 2: False}), verdict(SEEN, goal=True)],
        ),
        "judge",
        "user",
        turns=2,
        spoken=4,
        goal=(True, True),
    ),
    Row(
        "the user stops without words",
        crew_of(
            target=[HELP],
            user=["Refund", UserReply("", stop=True, usage=NO_USAGE)],
            judge=[verdict({0: False, 1: False, 2: False}), verdict(SEEN, goal=True)],
        ),
        "judge",
        "user",
        turns=1,
        spoken=2,
        goal=(True, True),
    ),
    Row(
        "the cap is reached",
        crew_of(target=[HELP], user=["a", "b", "c"], judge=[verdict(SEEN)]),
        "max_turns",
        "max_turns",
        turns=3,
        spoken=6,
    ),
    Row(
        "the same exchange again and again",
        crew_of(target=[HELP], user=["Refund"], judge=[verdict(SEEN)]),
        "judge",
        "repetition",
        turns=3,
        spoken=6,
        limits=Limits(max_turns=9),
    ),
    Row(
        "the target fails for good",
        crew_of(target=[HELP, TARGET_DOWN], user=["a", "b"], judge=[verdict(SEEN, goal=False)]),
        "error",
        "error",
        "target",
        spoken=3,
        states="pass unknown pass",
    ),
    Row(
        "the target does not answer in time",
        replace(crew_of(user=["a"], target_timeout_s=0.01), target=lambda _seat: Hanging()),
        "timeout",
        "timeout",
        "target",
        turns=0,
        spoken=1,
        states="unknown unknown unknown",
    ),
    Row(
        "the conversation's time is up while the target thinks",
        replace(crew_of(user=["a"], conversation_timeout_s=0.01), target=lambda _seat: Hanging()),
        "timeout",
        "timeout",
        "target",
        turns=0,
        spoken=1,
        states="unknown unknown unknown",
    ),
    Row(
        "the conversation's time is up while the user thinks",
        replace(crew_of(conversation_timeout_s=0.01), user=lambda _seat: Hanging()),
        "timeout",
        "timeout",
        "user_simulator",
        turns=0,
        spoken=0,
        goal=(False, False),
        states="unknown unknown unknown",
    ),
    Row(
        "the simulator fails and a last verdict comes",
        crew_of(
            target=[HELP], user=["a", SILENT], judge=[verdict({0: False, 1: False, 2: False}), verdict(SEEN, goal=True)]
        ),
        "error",
        "error",
        "user_simulator",
        goal=(True, True),
    ),
    Row(
        "the simulator fails and so does the last verdict",
        crew_of(target=[HELP], user=["a", SILENT], judge=[verdict(SEEN), JUDGE_DOWN]),
        "error",
        "error",
        "user_simulator",
        goal=(False, False),
        states="pass unknown pass",
    ),
    Row(
        "the simulator fails before anything was said",
        crew_of(user=[SILENT]),
        "error",
        "error",
        "user_simulator",
        turns=0,
        spoken=0,
        goal=(False, False),
        states="unknown unknown unknown",
    ),
    Row(
        "the judge fails in mid-run and the conversation goes on",
        crew_of(target=[HELP], user=["a", "b"], judge=[JUDGE_DOWN, verdict(SEEN, stop=True, goal=True)]),
        "judge",
        "judge",
        turns=2,
        spoken=4,
        goal=(True, True),
    ),
    Row(
        "the judge fails on the last verdict",
        crew_of(target=[HELP], user=["a", "b"], judge=[verdict(SEEN), JUDGE_DOWN]),
        "error",
        "error",
        "judge",
        turns=2,
        spoken=4,
        goal=(False, False),
        states="pass unknown pass",
        limits=Limits(max_turns=2),
    ),
    Row(
        "the environment fails",
        crew_of(target=[CALLS], user=["a"], environment=BrokenTools),
        "error",
        "error",
        "environment",
        turns=0,
        spoken=1,
        goal=(False, False),
        states="unknown unknown unknown",
    ),
    Row(
        "the process is out of file handles",
        crew_of(target=[OSError(24, "Too many open files")], user=["a"]),
        "error",
        "error",
        "infrastructure",
        turns=0,
        spoken=1,
        goal=(False, False),
        states="unknown unknown unknown",
    ),
    Row(
        "the agent only calls tools",
        crew_of(target=[CALLS], user=["a"], environment=lambda: BrokenTools(broken=False)),
        "error",
        "tool_cap",
        "target",
        turns=0,
        spoken=1,
        states="unknown unknown unknown",
        limits=Limits(max_turns=3, tool_rounds=2),
    ),
]


def states_of(result: SimulationResult) -> str:
    return " ".join(CriteriaMeta.model_validate(entry).state for entry in result.metadata["criteria_meta"])


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
async def test_every_ending_means_what_the_contract_says(row: Row) -> None:
    result = await converse(a_datapoint(a_scenario(criteria=CRITERIA)), row.crew, row.limits)
    read = (result.terminated_by.value, result.ended_by, result.failed_component)
    assert read == (row.terminated_by, row.ended_by, row.component)
    assert result.turn_count == row.turns
    assert len([m for m in result.messages if m.is_spoken]) == row.spoken
    assert (result.goal_achieved, result.goal_known) == row.goal
    assert states_of(result) == row.states
    assert result.reason


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
async def test_what_is_unaudited_is_passed_unaudited_and_never_broken(row: Row) -> None:
    result = await converse(a_datapoint(a_scenario(criteria=CRITERIA)), row.crew, row.limits)
    metas = result.metadata["criteria_meta"]
    for meta in metas:
        assert set(meta) == {"id", "description", "type", "passed", "audited", "evidence"}
        if meta["audited"] is False:
            assert meta["passed"] is True
            assert meta["id"] not in result.rules_broken
    assert result.criteria_verified == any(meta["audited"] for meta in metas)
    assert result.fully_audited == all(meta["audited"] for meta in metas)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
async def test_every_begun_turn_has_metrics_and_turns_sum_to_the_conversation(row: Row) -> None:
    result = await converse(a_datapoint(a_scenario(criteria=CRITERIA)), row.crew, row.limits)
    numbers = [metrics.turn_number for metrics in result.turn_metrics]
    delivered = len([m for m in result.messages if m.role == "user"])
    assert numbers == list(range(1, len(numbers) + 1))
    assert len(numbers) >= delivered
    assert sum((m.token_usage for m in result.turn_metrics), NO_USAGE) == result.token_usage
    assert sum(result.usage_by_role.values(), NO_USAGE) == result.token_usage
    assert all(metrics.judge_reason for metrics in result.turn_metrics)


def tokens(n: int) -> Usage:
    return Usage(input_tokens=n, total_tokens=n, calls=1)


async def test_the_first_message_is_paid_for_in_turn_one_and_failed_calls_are_counted() -> None:
    crew = crew_of(
        user=[
            CallError("empty_reply", "", reask=True, usage=tokens(1)),
            UserReply("Hello", usage=tokens(10)),
            UserReply("More", usage=tokens(20)),
        ],
        target=[
            TargetReply((assistant("Yes?"),), usage=tokens(100)),
            TargetReply((assistant("So?"),), usage=tokens(200)),
        ],
        judge=[verdict(usage=tokens(1000)), verdict(usage=tokens(2000))],
    )
    result = await converse(a_datapoint(), crew, Limits(max_turns=2))
    assert [m.token_usage.total_tokens for m in result.turn_metrics] == [1111, 2220]
    assert result.token_usage.calls == 7
    assert {role: usage.total_tokens for role, usage in result.usage_by_role.items()} == {
        "user_simulator": 31, "target": 300, "judge": 3000,
    }  # fmt: skip


async def test_an_answer_that_could_not_be_read_makes_the_usage_unknown_and_is_listed() -> None:
    unreadable = CallError("malformed_response", "not JSON", retryable=True)
    crew = replace(crew_of(target=[unreadable, "Yes?"], judge=[verdict(stop=True)]), metered=frozenset({"target"}))
    result = await converse(a_datapoint(), crew)
    assert result.token_usage_known is False
    assert result.unread_answers == ["target: malformed_response"]


@pytest.mark.parametrize("cap", [1, 2, 3])
@pytest.mark.parametrize("first_message", ["", "My first line"])
async def test_max_turns_counts_exchanges_with_and_without_a_first_message(cap: int, first_message: str) -> None:
    crew = crew_of(user=["u1", "u2", "u3", "u4"], target=["a1", "a2", "a3", "a4"])
    result = await converse(a_datapoint(first_message=first_message), crew, Limits(max_turns=cap))
    assert result.turn_count == cap
    assert [m.role for m in result.messages] == ["user", "assistant"] * cap


async def test_an_opening_line_of_the_agent_is_no_exchange() -> None:
    crew = crew_of(user=["I need help"], target=["Welcome, this is support.", "Sure."])
    result = await converse(a_datapoint(a_scenario(opens="agent")), crew, Limits(max_turns=1))
    assert [m.text for m in result.messages] == ["Welcome, this is support.", "I need help", "Sure."]
    assert result.turn_count == 1


async def test_only_the_last_judge_call_is_told_that_it_is_final() -> None:
    judge = ScriptedJudge([verdict()])
    crew = replace(crew_of(user=["a", "b"], target=["x", "y"]), judge=lambda _seat: judge)
    await converse(a_datapoint(), crew, Limits(max_turns=2))
    assert [final for _, final in judge.asked] == [False, True]


async def test_judging_only_at_the_end_says_not_judged_for_the_turns_before() -> None:
    crew = crew_of(user=["a", "b", "c"], target=["x", "y", "z"], judge=[verdict(stop=False)])
    result = await converse(a_datapoint(), crew, Limits(max_turns=3, judge_every=0))
    assert [m.judge_reason for m in result.turn_metrics] == ["not judged", "not judged", "go on"]


def test_a_goal_state_decides_the_goal_and_keeps_the_judges_opinion() -> None:
    scenario = a_scenario(goal_state=[StateCheck(pointer="/refunds/0", equals="A1")])

    async def run(state: JsonValue) -> SimulationResult:
        crew = crew_of(judge=[verdict(stop=True, goal=True)], environment=lambda: BrokenTools(state))
        return await converse(a_datapoint(scenario), crew)

    refused = anyio.run(run, {"refunds": []})
    assert (refused.goal_achieved, refused.goal_known, refused.judge_goal_achieved) == (False, True, True)
    assert refused.goal_completion_score == 0.0
    granted = anyio.run(run, {"refunds": ["A1"]})
    assert (granted.goal_achieved, granted.goal_known, granted.goal_completion_score) == (True, True, 1.0)


async def test_nobody_could_decide_the_goal_is_unknown_not_missed() -> None:
    undecided = replace(verdict(stop=True), goal_known=False)
    result = await converse(a_datapoint(), crew_of(judge=[undecided]))
    assert (result.goal_achieved, result.goal_known) == (False, False)


async def test_a_check_that_cannot_be_read_is_unknown() -> None:
    criteria = [
        Criterion(description="refunds", type="must_happen", check=Check.model_validate({"tool_called": "refund"})),
        Criterion(description="state", type="must_not_happen", check=Check(state=StateCheck(pointer="/x", equals=1))),
    ]
    blind = await converse(a_datapoint(a_scenario(criteria=criteria)), crew_of(judge=[verdict(stop=True)]))
    assert states_of(blind) == "unknown unknown"
    watched = crew_of(judge=[verdict(stop=True)], environment=lambda: BrokenTools({"x": 1}))
    seen = await converse(a_datapoint(a_scenario(criteria=criteria)), watched)
    assert states_of(seen) == "fail fail"


async def test_a_check_is_never_asked_of_the_judge_nor_overruled_by_it() -> None:
    criteria = [Criterion(description="greets", type="must_happen", check=Check(agent_says="hello"))]
    judge = ScriptedJudge([verdict({0: "Good morning to you"}, stop=True)])
    crew = replace(crew_of(target=["Good morning to you"]), judge=lambda _seat: judge)
    result = await converse(a_datapoint(a_scenario(criteria=criteria)), crew)
    assert judge.asked == [((), False)]
    assert states_of(result) == "fail"


REFUSALS = [
    ("words nobody said", "we offer you a golden pony", "agent", False),
    ("the user's words", "I want a refund", "agent", False),
    ("the user's words about the user", "I want a refund", "user", True),
    ("two words", "gladly help", "agent", False),
    ("half a word", "ladly help you with tha", "agent", False),
    ("other case, spaces and marks", "  “I will GLADLY\n help” ", "agent", True),
]


@pytest.mark.parametrize(("quote", "about", "holds"), [row[1:] for row in REFUSALS], ids=[row[0] for row in REFUSALS])
async def test_a_quote_that_is_not_in_the_transcript_confirms_nothing(quote: str, about: str, holds: bool) -> None:
    criteria = [Criterion(description="x", type="must_not_happen", about=about)]  # type: ignore[arg-type]
    crew = crew_of(target=[HELP], judge=[verdict({0: quote}, stop=True)])
    result = await converse(a_datapoint(a_scenario(criteria=criteria)), crew)
    assert states_of(result) == ("fail" if holds else "unknown")
    assert result.criteria_audit[0].occurred is holds
    if holds:
        assert quote.strip() in result.metadata["criteria_meta"][0]["evidence"]
        said = result.messages[result.criteria_audit[0].message_index or 0]
        assert said.role == ("user" if about == "user" else "assistant")


async def test_an_injected_judge_keeps_its_unproven_occurrence_marked_as_such() -> None:
    crew = crew_of(target=[HELP], judge=[verdict({0: "never said anywhere"}, stop=True, strict=False)])
    result = await converse(a_datapoint(a_scenario(criteria=CRITERIA)), crew)
    assert result.metadata["criteria_meta"][0]["audited"] is True
    assert result.criteria_audit[0].evidence_verified is False


async def test_an_occurrence_that_could_not_be_shown_takes_an_earlier_clean_audit_away() -> None:
    crew = crew_of(
        user=["a", "b"], target=["x y z", "u v w"], judge=[verdict({2: False}), verdict({2: "not in there"}, stop=True)]
    )
    result = await converse(a_datapoint(a_scenario(criteria=CRITERIA)), crew)
    assert states_of(result).split()[2] == "unknown"


async def test_tool_rows_of_a_silent_agent_do_not_count_as_words() -> None:
    reply = TargetReply((assistant(None, [tool_call("t", "f", {})]), tool_result("t", "ok"), Message(role="assistant")))
    result = await converse(a_datapoint(), crew_of(target=[reply]))
    assert (result.failed_component, result.metadata["error_type"]) == ("target", "empty_reply")
