"""The simulated user: what it asks its model, what it accepts as a turn, and when it gives up."""

from __future__ import annotations

import json
from collections.abc import Sequence

import pytest

from evaluatorq.errors import CallError
from evaluatorq.model.cases import CommunicationStyle, Persona, Scenario, SimulationDatapoint
from evaluatorq.model.messages import Message, assistant, tool_call, tool_result, user
from evaluatorq.model.usage import Usage
from evaluatorq.ports import ChatReply, ChatRequest, Seat, UserSimulator
from evaluatorq.roles.user import UserRole, model_user

USAGE = Usage(input_tokens=30, output_tokens=5, total_tokens=35, calls=1)
OPENED = (user("Where is order A1042?"), assistant("Which order do you mean?"))


class ScriptedModel:
    """Answers in order; keeps the requests."""

    name = "sim-model"

    def __init__(self, *replies: ChatReply | CallError) -> None:
        self.replies = list(replies)
        self.requests: list[ChatRequest] = []

    async def complete(self, request: ChatRequest) -> ChatReply:
        self.requests.append(request)
        reply = self.replies.pop(0)
        if isinstance(reply, CallError):
            raise reply
        return reply


def says(text: object, stop: object = False, **more: object) -> ChatReply:
    return ChatReply(answer={"reply": text, "end_conversation": stop}, usage=USAGE, raw=f"raw {text!r}", **more)


def seat_for(**scenario: object) -> Seat:
    persona = Persona(
        name="Dana",
        patience=0.2,
        assertiveness=0.8,
        politeness=0.5,
        technical_level=0.5,
        communication_style=CommunicationStyle.TERSE,
        background="baker",
    )
    case = Scenario.model_validate({"name": "late parcel", "goal": "get a delivery date", **scenario})
    return Seat(SimulationDatapoint(id="dp_1", persona=persona, scenario=case), "run:0", 1, 10)


def seen(request: ChatRequest) -> list[dict]:
    return [json.loads(line) for line in request.lines]


async def fault_of(role: UserSimulator, messages: Sequence[Message]) -> CallError:
    with pytest.raises(CallError) as caught:
        await role.speak(messages)
    return caught.value


async def test_a_turn_carries_words_stop_flag_usage_and_reasoning():
    role = UserRole(ScriptedModel(says("  It is A1042.  ", model="m-7", reasoning="they want the number")), seat_for())
    reply = await role.speak(OPENED)
    assert (reply.text, reply.stop, reply.usage) == ("It is A1042.", False, USAGE)
    assert (reply.model, reply.reasoning) == ("m-7", "they want the number")


async def test_the_model_is_named_where_the_answer_does_not():
    assert (await UserRole(ScriptedModel(says("Hello?")), seat_for()).speak(())).model == "sim-model"


async def test_words_said_while_stopping_are_kept():
    role = UserRole(ScriptedModel(says("My code is 4471, that is all.", True)), seat_for())
    reply = await role.speak(OPENED)
    assert (reply.text, reply.stop) == ("My code is 4471, that is all.", True)


async def test_a_user_may_stop_without_words_once_it_has_spoken():
    reply = await UserRole(ScriptedModel(says("", True)), seat_for()).speak(OPENED)
    assert (reply.text, reply.stop) == ("", True)


async def test_a_conversation_does_not_begin_with_a_user_who_leaves_without_a_word():
    fault = await fault_of(UserRole(ScriptedModel(says("", True)), seat_for()), ())
    assert fault.code == "empty_reply"


async def test_a_turn_without_words_is_asked_for_once_more_and_then_is_the_simulators_fault():
    model = ScriptedModel(says(""), says("  \n"))
    role = UserRole(model, seat_for())
    first, second = await fault_of(role, OPENED), await fault_of(role, OPENED)
    assert (first.code, first.reask, first.usage, first.raw) == ("empty_reply", True, USAGE, "raw ''")
    assert (second.code, second.reask, second.retryable, second.usage) == ("empty_reply", False, False, USAGE)
    assert "no words" not in (model.requests[0].tail or "")
    assert "no words" in (model.requests[1].tail or "")


async def test_the_next_turn_starts_with_fresh_patience():
    model = ScriptedModel(says(""), says("A1042"), says(""), says("thanks"))
    role = UserRole(model, seat_for())
    assert (await fault_of(role, OPENED)).reask
    await role.speak(OPENED)
    longer = (*OPENED, user("A1042"), assistant("It comes on Friday."))
    assert (await fault_of(role, longer)).reask
    assert (await role.speak(longer)).text == "thanks"


async def test_a_line_that_only_an_agent_would_say_is_refused_with_the_reason():
    model = ScriptedModel(says("How can I help you today?"), says("A1042"))
    role = UserRole(model, seat_for())
    fault = await fault_of(role, OPENED)
    assert (fault.code, fault.reask, fault.usage) == ("simulator_contract", True, USAGE)
    assert "what the agent would say" in fault.message
    assert (await role.speak(OPENED)).text == "A1042"
    assert "what the agent would say" in (model.requests[1].tail or "")


async def test_a_second_breach_ends_it():
    role = UserRole(ScriptedModel(*[says("As an AI language model, I have no order.")] * 2), seat_for())
    assert (await fault_of(role, OPENED)).retryable
    assert not (await fault_of(role, OPENED)).retryable


@pytest.mark.parametrize(("text", "stop"), [(None, False), (7, False), (["hi"], False), ("hi", "false"), ("hi", 1)])
async def test_an_answer_of_the_wrong_types_is_malformed_not_guessed_at(text: object, stop: object):
    fault = await fault_of(UserRole(ScriptedModel(says(text, stop)), seat_for()), OPENED)
    assert (fault.code, fault.reask, fault.usage) == ("malformed_response", True, USAGE)


@pytest.mark.parametrize("answer", [{}, {"ok": True}, {"end_conversation": False}, {"message": "hi"}])
async def test_an_object_without_a_reply_is_malformed(answer: dict):
    fault = await fault_of(UserRole(ScriptedModel(ChatReply(answer=answer)), seat_for()), OPENED)
    assert fault.code == "malformed_response"


async def test_prose_instead_of_the_object_is_re_asked_three_times():
    role = UserRole(ScriptedModel(*[ChatReply(text="Sure, I want a refund.", usage=USAGE)] * 4), seat_for())
    faults = [await fault_of(role, OPENED) for _ in range(4)]
    assert [fault.reask for fault in faults] == [True, True, True, False]
    assert {fault.code for fault in faults} == {"malformed_response"}
    assert faults[0].raw == "Sure, I want a refund."


async def test_a_refusal_is_named_as_one():
    fault = await fault_of(UserRole(ScriptedModel(ChatReply(refusal="I cannot do that.")), seat_for()), OPENED)
    assert (fault.code, fault.reask, fault.usage) == ("refusal", True, None)


async def test_bad_luck_on_the_way_passes_through_as_the_model_raised_it():
    error = CallError("rate_limit", "slow down", retryable=True, retry_after=3.0)
    assert await fault_of(UserRole(ScriptedModel(error), seat_for()), OPENED) is error


async def test_unreadable_answers_reported_by_the_model_count_and_are_told():
    def cut() -> CallError:
        return CallError("truncated_response", "cut", reask=True, usage=USAGE, raw='{"re')

    model = ScriptedModel(cut(), cut(), cut(), cut())
    role = UserRole(model, seat_for())
    faults = [await fault_of(role, OPENED) for _ in range(4)]
    assert [fault.reask for fault in faults] == [True, True, True, False]
    assert all((fault.code, fault.usage, fault.raw) == ("truncated_response", USAGE, '{"re') for fault in faults)
    assert "cut off" in (model.requests[1].tail or "")


async def test_the_simulator_hears_the_agent_as_user_and_no_tool_traffic():
    transcript = (
        user("Where is parcel P1?"),
        assistant(None, [tool_call("t1", "track", {"id": "P1"})]),
        tool_result("t1", "at depot"),
        assistant("It is at the depot."),
    )
    model = ScriptedModel(says("Which depot?"))
    await UserRole(model, seat_for()).speak(transcript)
    opening, *rest = seen(model.requests[0])
    assert opening["role"] == "user"
    assert rest == [
        {"role": "assistant", "content": "Where is parcel P1?"},
        {"role": "user", "content": "It is at the depot."},
    ]
    assert "at depot" not in json.dumps(seen(model.requests[0]))


async def test_requests_of_one_conversation_only_grow():
    model = ScriptedModel(says("Where is it?"), says("A1042"), says("ok"))
    role = UserRole(model, seat_for())
    rows: list[Message] = []
    for turn in range(3):
        reply = await role.speak(tuple(rows))
        rows += [user(reply.text), assistant(f"answer {turn}")]
    first, second, third = (request.lines for request in model.requests)
    assert second[: len(first)] == first
    assert third[: len(second)] == second
    assert len({id(request.prefix) for request in model.requests}) == 1


async def test_where_the_agent_opens_the_user_answers_it():
    model = ScriptedModel(says("I need help."))
    reply = await UserRole(model, seat_for(opens="agent")).speak((assistant("Welcome, this is support."),))
    assert reply.text == "I need help."
    assert seen(model.requests[0]) == [{"role": "user", "content": "Welcome, this is support."}]


async def test_a_resumed_conversation_asks_the_same_question():
    earlier, later = ScriptedModel(says("Hello?"), says("A1042")), ScriptedModel(says("A1042"))
    role = UserRole(earlier, seat_for())
    await role.speak(())
    await role.speak(OPENED)
    await UserRole(later, seat_for()).speak(tuple(row.model_copy() for row in OPENED))
    assert (later.requests[0].lines, later.requests[0].tail) == (earlier.requests[1].lines, earlier.requests[1].tail)


async def test_no_criterion_and_no_ground_truth_reaches_the_simulators_model():
    model = ScriptedModel(says("Where is it?"))
    scenario = {
        "criteria": [{"must_happen": "CRITERION-TEXT"}],
        "ground_truth": "TRUTH-TEXT",
        "goal_check": {"agent_says": "GOAL-CHECK"},
    }
    await UserRole(model, seat_for(**scenario)).speak(())
    request = model.requests[0]
    told = f"{request.prefix.system} {request.prefix.answer} {request.lines} {request.tail}"
    assert "CRITERION-TEXT" not in told
    assert "TRUTH-TEXT" not in told
    assert "GOAL-CHECK" not in told


async def test_a_value_that_only_the_judge_knows_is_no_users_line_until_the_agent_released_it():
    seat = seat_for(ground_truth="The refund id is RF-20417.")
    fault = await fault_of(UserRole(ScriptedModel(says("Is it RF-20417?")), seat), OPENED)
    assert fault.code == "simulator_contract"
    released = (*OPENED, user("A1042"), assistant("Your refund id is RF-20417."))
    assert (await UserRole(ScriptedModel(says("So RF-20417?")), seat).speak(released)).text == "So RF-20417?"
    told = seat_for(ground_truth="The refund id is RF-20417.", knows={"refund id": "RF-20417"})
    assert (await UserRole(ScriptedModel(says("It is RF-20417.")), told).speak(OPENED)).text == "It is RF-20417."


async def test_a_simulator_that_always_says_the_same_is_left_to_the_repetition_guard():
    line = "Customer here: I have looked at the order and can see that it does not match the invoice."
    rows = (user(line), assistant("a1"), user("SCRIPTED"), assistant("a2"))
    reply = await UserRole(ScriptedModel(says(line)), seat_for(script=[None, "SCRIPTED", None])).speak(rows)
    assert reply.text == line


async def test_the_factory_gives_each_conversation_its_own_simulator():
    factory = model_user(ScriptedModel())
    assert factory(seat_for()) is not factory(seat_for())
