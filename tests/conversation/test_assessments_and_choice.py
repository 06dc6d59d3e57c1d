"""What the agent holds beside its words, many small steps before it speaks, and an end of its own choice."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

import pytest
from pydantic import JsonValue

from evaluatorq.conversation.machine import apply, begin
from evaluatorq.environments.toolbox import Toolbox, tool
from evaluatorq.model.assessments import Assessment
from evaluatorq.model.cognition import Cognition
from evaluatorq.model.events import BELIEFS, Noted
from evaluatorq.model.messages import Message, assistant, tool_call
from evaluatorq.model.results import SimulationResult
from evaluatorq.model.runs import Limits
from evaluatorq.model.usage import NO_USAGE, Usage
from evaluatorq.ports import TargetReply
from evaluatorq.records.result import result_of
from evaluatorq.testing import a_datapoint, a_scenario, converse, crew_of, verdict
from evaluatorq.toolset import ToolRefused

RULES = {"scale": {"name": "s", "levels": [1, 2, 3]}, "ends": ["end"]}


@tool
def look() -> str:
    """Looks."""
    return "seen"


@tool
def end(level: int) -> str:
    """Ends."""
    if level > 3:
        raise ToolRefused("no such level")
    return "ended"


def calls(name: str, number: int, text: str | None = None, **arguments: JsonValue) -> Message:
    return assistant(text, [tool_call(f"c{number}", name, arguments)])


async def talk(*lines: str | Message | TargetReply, limits: Limits | None = None) -> SimulationResult:
    case = a_datapoint(a_scenario(cognition=RULES, truth={"level": 2}))
    crew = crew_of(
        target=lines,
        user=["one", "two", "three", "four"],
        judge=[verdict()],
        environment=lambda: Toolbox[dict[str, JsonValue]]({}, [look, end]),
    )
    return await converse(case, crew, limits)


# ---------------------------------------------------------------- how conversations end


async def test_an_agent_may_act_several_times_before_it_speaks() -> None:
    result = await talk(calls("look", 1), calls("look", 2), "Done.", limits=Limits(max_turns=1))
    assert (result.ended_by, result.turn_count) == ("max_turns", 1)
    assert [row.role for row in result.messages] == ["user", "assistant", "tool", "assistant", "tool", "assistant"]


async def test_choice_turn_cap_and_step_cap_are_told_apart() -> None:
    by_choice = await talk(calls("end", 1, level=2))
    by_turns = await talk("Hm.", "Well.", limits=Limits(max_turns=2))
    by_steps = await talk(*(calls("look", n) for n in range(9)), limits=Limits(tool_rounds=3))
    endings = [(one.terminated_by.value, one.ended_by) for one in (by_choice, by_turns, by_steps)]
    assert endings == [("judge", "agent"), ("max_turns", "max_turns"), ("error", "tool_cap")]
    assert by_steps.failed_component == "target"


async def test_an_agent_that_spoke_beside_its_many_calls_is_not_said_to_have_been_silent() -> None:
    spoken = await talk(*(calls("look", n, "One moment.") for n in range(9)), limits=Limits(tool_rounds=3))
    silent = await talk(*(calls("look", n) for n in range(9)), limits=Limits(tool_rounds=3))
    assert spoken.reason == "The agent called tools 3 times in one turn and then called again."
    assert silent.reason == "The agent called tools 3 times in one turn and did not speak."


async def test_a_silent_end_is_no_exchange_and_its_turn_says_why_it_was_not_judged() -> None:
    result = await talk("Hello.", calls("end", 1, level=2))
    assert (result.turn_count, result.ended_by) == (1, "agent")
    assert [turn.turn_number for turn in result.turn_metrics] == [1, 2]
    assert result.turn_metrics[1].judge_reason == "The agent ended the conversation."
    assert result.observations[-1].error_code is None
    assert not result.errored


async def test_words_that_come_with_the_end_are_the_reply() -> None:
    result = await talk(calls("end", 1, "Goodbye.", level=2))
    assert (result.turn_count, result.ended_by) == (1, "agent")
    assert result.messages[-1].role == "tool"


async def test_words_after_an_end_that_the_agent_ran_itself_are_the_reply() -> None:
    rows = (calls("end", 1, level=2), Message(role="tool", tool_call_id="c1", content="ended"), assistant("Goodbye."))
    result = await talk(TargetReply(rows, usage=NO_USAGE))
    assert (result.turn_count, result.ended_by, result.messages[-1].text) == (1, "agent", "Goodbye.")


async def test_an_end_that_was_refused_ends_nothing() -> None:
    result = await talk(calls("end", 1, level=9), "Hm.", limits=Limits(max_turns=1))
    assert result.ended_by == "max_turns"


async def test_a_tool_of_that_name_ends_nothing_where_the_case_does_not_say_so() -> None:
    crew = crew_of(
        target=[calls("end", 1, level=2), "Go on."],
        judge=[verdict(stop=True)],
        environment=lambda: Toolbox[dict[str, JsonValue]]({}, [end]),
    )
    result = await converse(a_datapoint(), crew)
    assert (result.ended_by, result.cognition) == ("judge", None)


# ---------------------------------------------------------------- assessments


async def test_any_step_may_carry_an_assessment_and_the_record_says_where_it_was_read() -> None:
    told = Assessment(value=3, confidence="low", rationale="nothing known")
    silent = TargetReply((calls("look", 1),), usage=NO_USAGE, assessment=Assessment(value=2))
    result = await talk(
        TargetReply((assistant("Hello."),), usage=NO_USAGE, assessment=told), silent, calls("end", 2, level=1)
    )
    record = result.cognition
    assert record is not None
    seen = [(one.turn, one.call, one.assessment.value, one.assessment.source) for one in record.assessments]
    assert seen == [
        (1, None, 3, "structured_output"),
        (2, "c1", 2, "structured_output"),
        (2, "c2", 1, "tool"),
    ]


async def test_words_are_read_by_a_pattern_where_the_case_gives_one() -> None:
    rules = Cognition.model_validate({**RULES, "assess": {"says": r"level (?P<value>\d)(?: \((?P<confidence>\w+)\))?"}})
    case = a_datapoint(a_scenario(cognition=rules))
    result = await converse(case, crew_of(target=["First level 3, now level 2 (high)."], judge=[verdict(stop=True)]))
    [one] = result.cognition.assessments  # type: ignore[union-attr]
    assert (one.assessment.value, one.assessment.confidence, one.assessment.source) == ("2", "high", "extractor")


async def test_a_record_survives_its_file() -> None:
    result = await talk(
        TargetReply((assistant("Hello."),), usage=NO_USAGE, assessment=Assessment(value=3)), calls("end", 1, level=2)
    )
    assert SimulationResult.model_validate_json(result.model_dump_json()) == result


# ---------------------------------------------------------------- beliefs that somebody noted


def noted(data: JsonValue, usage: Usage | None = None) -> Noted:
    return Noted(at=datetime(2026, 1, 1, tzinfo=UTC), what=BELIEFS, data=data, usage=usage)


async def test_noted_beliefs_are_kept_with_the_record_and_what_they_cost_is_booked() -> None:
    events: list[object] = []
    case = a_datapoint(a_scenario(cognition=RULES))
    await converse(case, crew_of(target=["Hello."], judge=[verdict(stop=True)]), events=events)  # type: ignore[arg-type]
    state = begin(case, Limits())
    for event in events:
        state = apply(state, event)  # type: ignore[arg-type]
        if event.kind == "target_replied":  # type: ignore[attr-defined]
            spent = Usage(calls=1, input_tokens=5, output_tokens=2, total_tokens=7)
            state = apply(state, noted([{"slot": "mood", "value": "calm", "certainty": "inferred", "row": 0}], spent))
    result = result_of(state, thread_id="t", row=0)
    [item] = result.cognition.belief.slots["mood"]  # type: ignore[union-attr]
    assert (item.value, item.certainty, item.turn) == ("calm", "inferred", 0)
    assert result.usage_by_role["beliefs"].total_tokens == 7
    assert result.token_usage.total_tokens == 7
    assert sum(turn.token_usage.total_tokens for turn in result.turn_metrics) == 7


@pytest.mark.parametrize("bad", [{"levels": [1]}, {"levels": [1, "1"]}])
def test_a_scale_has_levels_that_can_be_told_apart(bad: dict[str, Sequence[object]]) -> None:
    with pytest.raises(ValueError, match="levels"):
        Cognition.model_validate({"scale": {"name": "s", **bad}})
