"""The conversation as a pure state machine: ``apply(state, event)`` and ``next_request(state)``.

A turn is an exchange: a user message delivered and a spoken reply received. It begins when the user's words are
delivered and counts when the reply is in. What was spent before any turn began is carried into the next one that does.
An ending that still needs a closing reply or a last verdict is held in ``ending`` until that came.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping

from evaluatorq.conversation.choice import ENDED_BY_CHOICE, ended_by_choice, spoke_last
from evaluatorq.conversation.facts import TurnEvent, begin_turn, notice
from evaluatorq.conversation.ledger import fold_verdicts, observe
from evaluatorq.conversation.requests import AskJudge, AskTarget, AskUser, ChangeWorld, Request, RunTools, Stop
from evaluatorq.conversation.script import SCRIPT_OVER, fixed_line, script_is_over
from evaluatorq.conversation.state import Conversation, Environment, Phase, Turn, begin
from evaluatorq.errors import ProtocolError
from evaluatorq.model.cases import SimulationDatapoint
from evaluatorq.model.events import (
    BELIEFS,
    CLAIMS,
    CallFailed,
    Ended,
    Event,
    Noted,
    Observed,
    Resumed,
    Scored,
    Started,
    TargetReplied,
    ToolsReturned,
    TurnJudged,
    UserSpoke,
    WorldChanged,
)
from evaluatorq.model.judgments import Judgment
from evaluatorq.model.messages import Message, ToolCall, open_calls
from evaluatorq.model.replacing import replace
from evaluatorq.model.results import ResponseTrace
from evaluatorq.model.runs import Limits
from evaluatorq.model.usage import NO_USAGE, NOT_TOLD, Usage, added

__all__ = [
    "Conversation",
    "Environment",
    "Phase",
    "Turn",
    "apply",
    "begin",
    "fold",
    "next_request",
    "request_digest",
]


def fold(datapoint: SimulationDatapoint, limits: Limits, events: Iterable[Event]) -> Conversation:
    """The state after ``events``."""
    state = begin(datapoint, limits)
    for event in events:
        state = apply(state, event)
    return state


# ---------------------------------------------------------------- what to ask next


def next_request(state: Conversation) -> Request:
    """What a driver must do now. The answer goes through ``apply``."""
    match state.phase:
        case Phase.USER:
            line, first = fixed_line(state.datapoint, state.messages, state.script_at)
            return AskUser(state.messages, line, first)
        case Phase.TARGET:
            return _outside_change(state) or AskTarget(state.messages)
        case Phase.TOOLS:
            return RunTools(_open(state))
        case Phase.JUDGE:
            return AskJudge(state.messages, state.ledger.open_ids(state.scenario), state.is_last_verdict)
        case Phase.CLOSED if state.ending is not None:
            return state.ending
        case _ if state.ended is not None:
            end = state.ended
            return Stop(end.terminated_by, end.ended_by, end.reason, end.failed_component, end.error_type)
    raise ProtocolError("a closed conversation has an ending")


def _outside_change(state: Conversation) -> ChangeWorld | None:
    """The next change by somebody else that is due before the agent answers this turn."""
    planned = state.scenario.events or []
    if state.outside_at >= len(planned) or not state.environment.present or not state.turns:
        return None
    if planned[state.outside_at].before_turn > state.turns[-1].number or state.tool_rounds:
        return None
    return ChangeWorld(state.outside_at, planned[state.outside_at])


def request_digest(state: Conversation, request: Request | None = None) -> str:
    """A digest of the present request: what is asked, of whom, over which transcript."""
    request = request or next_request(state)
    parts = [type(request).__name__, state.chain]
    if isinstance(request, AskJudge):
        parts += [*request.open_criteria, str(request.final)]
    return hashlib.blake2b("\x1f".join(parts).encode(), digest_size=12).hexdigest()


def _open(state: Conversation) -> tuple[ToolCall, ...]:
    start = next((i for i in range(len(state.messages) - 1, -1, -1) if state.messages[i].role == "assistant"), 0)
    return open_calls(state.messages[start:])


# ---------------------------------------------------------------- what happened


def apply(state: Conversation, event: Event) -> Conversation:  # noqa: PLR0911  one row of the table per case
    """The state after ``event``. An event that does not fit the phase raises ``ProtocolError``."""
    match event:  # the most frequent first
        case UserSpoke() if state.phase is Phase.USER:
            return _user_spoke(state, event)
        case TargetReplied() if state.phase is Phase.TARGET:
            return _noticed(_target_replied(_opened(state), event), event)
        case TurnJudged() if state.phase is Phase.JUDGE:
            return _turn_judged(state, event)
        case Noted() | Scored():
            return _noted(state, event)
        case Resumed():
            return _resumed(state, event)
        case Ended():
            return _noticed(_ended(state, event), event)
        case Started():
            world = Environment(event.has_environment, event.state, event.state)
            return replace(state, environment=world, attempts=event.attempt)
        case CallFailed():
            return _noticed(_failed(_opened(state), event), event)
        case ToolsReturned() if state.phase is Phase.TOOLS:
            return _noticed(_tools_returned(state, event), event)
        case WorldChanged() if state.phase is Phase.TARGET:
            world = replace(state.environment, state=event.state)
            return _noticed(replace(state, environment=world, outside_at=event.number + 1), event)
        case Observed():
            return _noticed(state, event)
    raise ProtocolError(f"{event.kind} does not fit a conversation that waits for {state.phase.value}")


def _user_spoke(state: Conversation, event: UserSpoke) -> Conversation:
    if event.text.strip() == "" and not event.stop:
        raise ProtocolError("a user turn without words must say stop")
    _, is_first_message = fixed_line(state.datapoint, state.messages, state.script_at)
    state = _paid(state, "user_simulator", event)
    if not is_first_message:
        state = replace(state, script_at=state.script_at + 1)
    if event.stop:
        state = replace(state, ending=Stop("judge", "user", "The user ended the conversation."))
    if not event.text.strip():
        return replace(state, phase=Phase.JUDGE)
    facts = begin_turn(state.facts, state.turn_count + 1, len(state.messages), state.environment.state)
    state = _say(replace(state, facts=facts), (Message(role="user", content=event.text),))
    turn = Turn(state.turn_count + 1, state.carried)
    return replace(state, phase=Phase.TARGET, turns=(*state.turns, turn), carried=NO_USAGE, tool_rounds=0)


def _target_replied(state: Conversation, event: TargetReplied) -> Conversation:
    state = _paid(state, "target", event)
    traces = state.traces
    if event.trace_id or event.span_id or event.response_id:
        traces = (*traces, ResponseTrace(trace_id=event.trace_id, span_id=event.span_id, response_id=event.response_id))
    state = replace(
        _say(_world(state, event), event.messages),
        traces=traces,
        target_model=state.target_model or event.model,
        reports_tools=state.reports_tools or event.reports_tools or any(m.tool_calls for m in event.messages),
    )
    if event.assessment is not None:
        row = max((i for i, row in enumerate(state.messages) if row.role == "assistant"), default=0)
        state = replace(state, assessments=(*state.assessments, (row, event.assessment)))
    if open_calls(event.messages) and state.environment.present:
        return _begin_tools(state)
    return _reply_in(state)


def _begin_tools(state: Conversation) -> Conversation:
    rounds = state.tool_rounds + 1
    if rounds > state.limits.tool_rounds:
        last = "and then called again" if _spoke_in_turn(state) else "and did not speak"
        reason = f"The agent called tools {state.limits.tool_rounds} times in one turn {last}."
        return _close(_note(state, reason), Stop("error", "tool_cap", reason, "target", "tool_cap"))
    return replace(state, phase=Phase.TOOLS, tool_rounds=rounds)


def _spoke_in_turn(state: Conversation) -> bool:
    """The agent said something since the user's last message, if only beside its calls."""
    asked = max((i for i, row in enumerate(state.messages) if row.role == "user"), default=-1)
    return any(row.role == "assistant" and row.is_spoken for row in state.messages[asked + 1 :])


def _reply_in(state: Conversation) -> Conversation:
    """The agent has spoken: count the exchange and decide whether to judge it."""
    users = [message.text for message in state.messages if message.role == "user"]
    if not users:
        return replace(state, phase=Phase.USER)
    exchange = (users[-1], state.messages[-1].text)
    repeats = state.repeats + 1 if exchange == state.last_exchange else 1
    state = replace(state, turn_count=state.turn_count + 1, last_exchange=exchange, repeats=repeats)
    if state.ending is None and ended_by_choice(state.scenario, state.messages):
        state = replace(state, ending=ENDED_BY_CHOICE)
    if state.ending is None and repeats >= state.limits.repetition_limit:
        reason = f"The same exchange was repeated {repeats} times."
        state = replace(state, ending=Stop("judge", "repetition", reason))
    if state.ending is None and _violation(state):
        state = replace(state, ending=_violated())
    if state.ending is None and script_is_over(state.scenario, state.script_at):
        state = replace(state, ending=SCRIPT_OVER)
    every = state.limits.judge_every
    if state.is_last_verdict or (every and state.turn_count % every == 0):
        return replace(state, phase=Phase.JUDGE)
    return replace(_note(state, "not judged"), phase=Phase.USER)


def _tools_returned(state: Conversation, event: ToolsReturned) -> Conversation:
    state = _paid(state, "environment", event)
    state = replace(_say(_world(state, event), event.messages), phase=Phase.TARGET)
    return _chosen_end(state) if ended_by_choice(state.scenario, state.messages) else state


def _chosen_end(state: Conversation) -> Conversation:
    """The agent ended the conversation by a tool. Words that came with the call are its reply, else there is none."""
    facts = (*state.facts[:-1], replace(state.facts[-1], over=True)) if state.facts else state.facts
    state = replace(state, ending=state.ending or ENDED_BY_CHOICE, facts=facts)
    if spoke_last(state.messages):
        return _reply_in(state)
    return replace(_note(state, ENDED_BY_CHOICE.reason), phase=Phase.JUDGE)


def _noted(state: Conversation, event: Noted | Scored) -> Conversation:
    if isinstance(event, Scored):
        return state
    if event.usage is not None:
        state = _spend(state, event.what, event.usage, event.model)
    if not event.usage_known:
        state = _unread(state, f"{event.what}: the answer did not say what it cost")
    if event.what == CLAIMS:
        return replace(state, claims=event.data)
    return replace(state, beliefs=(*state.beliefs, event.data)) if event.what == BELIEFS else state


def _turn_judged(state: Conversation, event: TurnJudged) -> Conversation:
    judgment = event.judgment
    state = _paid(state, "judge", event)
    ledger = fold_verdicts(
        state.ledger,
        state.scenario,
        judgment.criteria_verdicts,
        state.messages,
        strict=event.strict,
        refused=event.refused,
    )
    last = state.is_last_verdict
    state = replace(
        state,
        ledger=ledger,
        judgment=judgment,
        goal_known=event.goal_known,
        completion_known="goal_completion_score" not in event.unknown_scores,
        final_verdict=last,
        turns=_judged(state, judgment, event.unknown_scores),
    )
    if state.ending is not None:
        return _close(state, state.ending)
    if judgment.should_terminate:
        return _close(
            replace(state, final_verdict=True), Stop("judge", "judge", judgment.reason or "The judge ended it.")
        )
    if _violation(state):
        return _close(replace(state, final_verdict=True), _violated())
    if last:
        return _close(state, Stop("max_turns", "max_turns", f"Maximum turns ({state.limits.max_turns}) reached"))
    return replace(state, phase=Phase.USER)


def _failed(state: Conversation, event: CallFailed) -> Conversation:
    if state.phase in (Phase.CLOSED, Phase.OVER):
        raise ProtocolError(f"a call failed in a conversation that is {state.phase.value}")
    state = _spend(state, event.component, event.usage, event.model)
    if not event.usage_known:
        state = _unread(state, f"{event.component}: {event.code}")
    if not event.final:
        return state
    if state.phase is Phase.JUDGE and event.component == "judge":
        return _judge_failed(state, event)
    stop = Stop(
        "timeout" if event.code == "timeout" and event.component == "target" else "error",
        "timeout" if event.code == "timeout" and event.component == "target" else "error",
        event.message or event.code,
        event.component,
        event.code,
    )
    if state.phase is Phase.USER:
        broken = Turn(state.turn_count + 1, state.carried, note=stop.reason)
        state = replace(state, turns=(*state.turns, broken), carried=NO_USAGE)
        if event.component == "user_simulator" and state.turn_count:
            return replace(state, phase=Phase.JUDGE, ending=stop)
        return _close(state, stop)
    return _close(_note(state, stop.reason), stop)


def _judge_failed(state: Conversation, event: CallFailed) -> Conversation:
    state = _note(state, f"not judged: {event.message or event.code}")
    if not state.is_last_verdict:
        return replace(state, phase=Phase.USER)
    if state.ending is not None and state.ending.failed_component is not None:
        return _close(state, state.ending)
    return _close(state, Stop("error", "error", event.message or event.code, "judge", event.code))


def _ended(state: Conversation, event: Ended) -> Conversation:
    if state.phase is Phase.OVER:
        raise ProtocolError("a conversation ends once")
    world = state.environment
    if event.state_changed or event.state_error:
        world = replace(world, state=event.state if event.state_changed else world.state, error=event.state_error)
    turns = state.turns
    if state.phase is Phase.TARGET and turns and not turns[-1].note:
        turns = (*turns[:-1], replace(turns[-1], note=event.reason))
    if event.lost:
        state = _unread(state, f"{event.lost}: an answer was on its way when the conversation ended")
    return replace(state, phase=Phase.OVER, ended=event, environment=world, turns=turns)


def _resumed(state: Conversation, event: Resumed) -> Conversation:
    if event.lost:
        state = _unread(state, f"{event.lost}: an answer was on its way when the process stopped")
    if not event.restart:
        return replace(state, attempts=event.attempt)
    fresh = begin(state.datapoint, state.limits)
    return replace(
        fresh,
        carried=state.usage,
        usage_by_role=state.usage_by_role,
        usage_by_model=state.usage_by_model,
        unread=state.unread,
        attempts=event.attempt,
        environment=Environment(event.has_environment, event.state, event.state),
    )


# ---------------------------------------------------------------- small steps


def _opened(state: Conversation) -> Conversation:
    """An agent that opens the conversation has a turn before the user's first."""
    if state.facts or state.phase is not Phase.TARGET:
        return state
    return replace(state, facts=begin_turn((), 0, 0, state.environment.state))


def _noticed(state: Conversation, event: TurnEvent) -> Conversation:
    rows, present = len(state.messages), state.environment.present
    facts = notice(state.facts, event, rows=rows, has_environment=present)
    return state if facts == () else replace(state, facts=facts)


def _violation(state: Conversation) -> bool:
    return state.limits.stop_on_violation and state.ledger.violated(state.scenario)


def _violated() -> Stop:
    return Stop("judge", "violation", "A behaviour that must not happen was seen.")


def _close(state: Conversation, stop: Stop) -> Conversation:
    return replace(state, phase=Phase.CLOSED, ending=stop)


def _world(state: Conversation, event: TargetReplied | ToolsReturned) -> Conversation:
    if not event.state_changed:
        return state
    return replace(state, environment=replace(state.environment, state=event.state))


def _say(state: Conversation, rows: tuple[Message, ...]) -> Conversation:
    messages = (*state.messages, *rows)
    digest = hashlib.blake2b(state.chain.encode(), digest_size=12)
    for row in rows:
        digest.update(row.model_dump_json(exclude_none=True).encode())
    ledger = observe(state.ledger, state.scenario, messages, len(state.messages))
    return replace(state, messages=messages, chain=digest.hexdigest(), ledger=ledger)


def _spend(state: Conversation, role: str, usage: Usage | None, model: str | None) -> Conversation:
    """Books what an answer cost: on the turn under way, or carried to the next where none is."""
    if usage is None or (not usage.calls and usage == NO_USAGE):
        return state
    by_role, by_model = added(state.usage_by_role, role, usage), added(state.usage_by_model, model or NOT_TOLD, usage)
    if state.phase is Phase.USER or not state.turns:
        return replace(state, carried=state.carried + usage, usage_by_role=by_role, usage_by_model=by_model)
    last = state.turns[-1]
    turns = (*state.turns[:-1], replace(last, usage=last.usage + usage))
    return replace(state, turns=turns, usage_by_role=by_role, usage_by_model=by_model)


def _paid(
    state: Conversation, role: str, event: UserSpoke | TargetReplied | ToolsReturned | TurnJudged
) -> Conversation:
    state = _spend(state, role, event.usage, event.model)
    return state if event.usage_known else _unread(state, f"{role}: the answer did not say what it cost")


def _unread(state: Conversation, what: str) -> Conversation:
    return replace(state, unread=(*state.unread, what))


def _note(state: Conversation, text: str) -> Conversation:
    if not state.turns:
        return state
    return replace(state, turns=(*state.turns[:-1], replace(state.turns[-1], note=text)))


def _judged(state: Conversation, judgment: Judgment, unknown_scores: Mapping[str, str]) -> tuple[Turn, ...]:
    """Puts the verdict on the last completed turn; a turn that broke before its reply keeps its reason."""
    turns = list(state.turns)
    at = next((i for i, turn in enumerate(turns) if turn.number == state.turn_count), None)
    if at is not None:
        turns[at] = replace(turns[at], judgment=judgment, note="", unknown_scores=unknown_scores)
    return tuple(turns)
