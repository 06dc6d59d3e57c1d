"""Properties of the machine: whatever the participants do, every prefix of what happened can be folded and finished."""

from __future__ import annotations

from itertools import pairwise

import anyio
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evaluatorq.conversation.machine import Conversation, Phase, apply, begin, fold, next_request, request_digest
from evaluatorq.conversation.requests import AskUser, Stop
from evaluatorq.errors import CallError, ProtocolError
from evaluatorq.model.cases import Check, Criterion, SimulationDatapoint
from evaluatorq.model.events import EVENT, Event, Noted, Started, TargetReplied, UserSpoke
from evaluatorq.model.messages import assistant, tool_call, tool_result
from evaluatorq.model.runs import Limits
from evaluatorq.model.usage import NO_USAGE, Usage
from evaluatorq.ports import TargetReply, ToolSpec, ToolsReply, UserReply
from evaluatorq.records.result import result_of
from evaluatorq.run.crew import Crew, seat_participants
from evaluatorq.run.driver import Driver, Setting
from evaluatorq.store.journal import JournalLine, encode_line
from evaluatorq.testing import FakeClock, a_datapoint, a_plan, a_scenario, crew_of, drive, verdict


class Counter:
    """An environment that counts its calls."""

    tools: tuple[ToolSpec, ...] = ()

    def __init__(self) -> None:
        self.state: dict[str, int] = {"calls": 0}

    async def run(self, calls: object) -> ToolsReply:
        rows = []
        for call in calls:  # type: ignore[attr-defined]
            self.state = {"calls": self.state["calls"] + 1}
            rows.append(tool_result(call.id, str(self.state["calls"])))
        return ToolsReply(tuple(rows))

    def snapshot(self) -> object:
        return dict(self.state)

    def restore(self, state: object) -> None:
        self.state = dict(state)  # type: ignore[call-overload]


USAGES = st.builds(lambda n: Usage(input_tokens=n, output_tokens=1, total_tokens=n + 1, calls=1), st.integers(0, 99))
FAULTS = st.builds(
    CallError,
    st.sampled_from(["rate_limit", "timeout", "bad_request", "malformed_response", "empty_reply"]),
    st.just("it went wrong"),
    retryable=st.booleans(),
    reask=st.booleans(),
    usage=st.none() | USAGES,
)
TEXT = st.sampled_from(["Hello", "My order is A1", "It is A1 indeed", "I refunded it for you", "ß \U0001f600 \x00 end"])
USERS = st.lists(st.builds(UserReply, TEXT, stop=st.booleans(), usage=USAGES) | FAULTS, min_size=1, max_size=6)
CALLS = st.builds(
    lambda n, usage: TargetReply(
        (assistant(None, [tool_call(f"t{i}", "f", {"i": i}) for i in range(n)]),), usage=usage
    ),
    st.integers(1, 2),
    USAGES,
)
TARGETS = st.lists(
    st.builds(lambda text, usage: TargetReply((assistant(text),), usage=usage), TEXT, USAGES) | CALLS | FAULTS,
    min_size=1,
    max_size=6,
)
QUOTES = st.sampled_from([False, "I refunded it for you", "nobody ever said this", "Hello"])
JUDGES = st.lists(
    st.builds(
        lambda a, b, stop, goal, usage: verdict({0: a, 1: b}, stop=stop, goal=goal, usage=usage),
        QUOTES,
        QUOTES,
        st.booleans(),
        st.booleans(),
        USAGES,
    )
    | FAULTS,
    min_size=1,
    max_size=6,
)
CRITERIA = [
    Criterion(description="refunds", type="must_happen"),
    Criterion(description="lies", type="must_not_happen"),
    Criterion(description="names the order", type="must_happen", check=Check(agent_says=r"\bA1\b")),
    Criterion(description="calls f", type="must_not_happen", check=Check.model_validate({"tool_called": "f"})),
]
DATAPOINTS = st.builds(
    lambda opens, script, first, after: a_datapoint(
        a_scenario(criteria=CRITERIA, opens=opens, script=script, after_script=script and after), first_message=first
    ),
    st.sampled_from([None, "agent"]),
    st.none() | st.just(["First fixed line", None, "Third fixed line"]) | st.just(["Only fixed line"]),
    st.sampled_from(["", "The very first message"]),
    st.sampled_from([None, "simulate", "stop"]),
)
LIMITS = st.builds(
    Limits,
    max_turns=st.integers(1, 4),
    tool_rounds=st.integers(1, 3),
    judge_every=st.integers(0, 2),
    stop_on_violation=st.booleans(),
)
CREWS = st.builds(
    lambda user, target, judge, world: crew_of(
        user=user, target=target, judge=judge, environment=Counter if world else None
    ),
    USERS,
    TARGETS,
    JUDGES,
    st.booleans(),
)
ARGUMENTS = {"datapoint": DATAPOINTS, "limits": LIMITS, "crew": CREWS}


def driven(datapoint: SimulationDatapoint, limits: Limits, crew: Crew) -> tuple[list[Event], Conversation]:
    events: list[Event] = []

    async def run() -> Conversation:
        return await drive(a_plan(datapoint, limits=limits), crew, events, FakeClock())

    return events, anyio.run(run)


async def finished(state: Conversation, crew: Crew, limits: Limits) -> Conversation:
    plan = a_plan(state.datapoint, limits=limits)
    participants = await seat_participants(crew, plan, 0, lambda: crew.environment(state.datapoint, 0))
    if participants.environment is not None:
        participants.environment.restore(state.environment.state)
    driver = Driver(state, participants, crew, Setting("t", lambda _event, _state: None, FakeClock()))
    return await driver.drive(None)


@settings(max_examples=150)
@given(**ARGUMENTS)
def test_folding_what_was_written_gives_the_state_that_was_driven(
    datapoint: SimulationDatapoint, limits: Limits, crew: Crew
) -> None:
    events, state = driven(datapoint, limits, crew)
    assert state.phase is Phase.OVER
    assert fold(datapoint, limits, events) == state
    lines = [encode_line(7, event) for event in events]
    assert [EVENT.validate_json(line.replace(b'"row":7,', b"", 1)) for line in lines] == events
    assert all(line.count(b"\n") == 1 for line in lines)


@settings(max_examples=60)
@given(**ARGUMENTS)
def test_every_prefix_can_be_finished_and_then_has_a_result(
    datapoint: SimulationDatapoint, limits: Limits, crew: Crew
) -> None:
    events, _ = driven(datapoint, limits, crew)

    async def finish_all() -> None:
        for cut in range(1, len(events) + 1):
            state = await finished(fold(datapoint, limits, events[:cut]), crew, limits)
            result = result_of(state, thread_id="t", row=0)
            assert result.reason
            assert sum((m.token_usage for m in result.turn_metrics), NO_USAGE) == result.token_usage

    anyio.run(finish_all)


@settings(max_examples=100)
@given(**ARGUMENTS)
def test_every_answer_carries_the_digest_of_the_question_it_answers(
    datapoint: SimulationDatapoint, limits: Limits, crew: Crew
) -> None:
    events, _ = driven(datapoint, limits, crew)
    state = begin(datapoint, limits)
    for event in events:
        digest = getattr(event, "digest", "")
        if digest:
            assert digest == request_digest(state)
        state = apply(state, event)


@settings(max_examples=100)
@given(**ARGUMENTS)
def test_users_and_agents_alternate_and_fixed_lines_are_sent_word_for_word(
    datapoint: SimulationDatapoint, limits: Limits, crew: Crew
) -> None:
    events, state = driven(datapoint, limits, crew)
    spoken = [message.role for message in state.messages if message.is_spoken]
    assert all(a != b for a, b in pairwise(spoken))
    lines = [event.text for event in events if isinstance(event, UserSpoke) and event.source != "simulated"]
    fixed = ([datapoint.first_message] if datapoint.first_message else []) + [
        line for line in datapoint.scenario.script or [] if line is not None
    ]
    assert lines == fixed[: len(lines)]
    assert state.turn_count <= limits.max_turns


@settings(max_examples=100)
@given(**ARGUMENTS)
def test_occurrence_never_goes_back(datapoint: SimulationDatapoint, limits: Limits, crew: Crew) -> None:
    events, _ = driven(datapoint, limits, crew)
    state, seen = begin(datapoint, limits), [False] * len(CRITERIA)
    for event in events:
        state = apply(state, event)
        now = [entry.occurred for entry in state.ledger.entries]
        assert all(later or not earlier for earlier, later in zip(seen, now, strict=True))
        seen = now


def test_an_answer_to_a_question_that_was_not_asked_is_a_protocol_error() -> None:
    state = begin(a_datapoint(), Limits())
    reply = TargetReplied(at=FakeClock().now(), messages=(assistant("hi"),))
    with pytest.raises(ProtocolError, match="waits for user"):
        apply(state, reply)


def test_a_note_changes_nothing() -> None:
    state = begin(a_datapoint(), Limits())
    assert apply(state, Noted(at=FakeClock().now(), what="x")) == state


def test_an_ended_conversation_answers_with_its_ending() -> None:
    events, state = driven(a_datapoint(), Limits(max_turns=1), crew_of())
    assert isinstance(next_request(state), Stop)
    assert isinstance(next_request(fold(a_datapoint(), Limits(), events[:1])), AskUser)
    assert isinstance(events[0], Started)
    assert JournalLine(0, events[0]).row == 0
