"""What an agent said that it did, held against what it did: words from the transcript, facts from calls and state.

A statement is backed when its fact was there by the time it was made: a call with an answer before those words, or a
state that holds at the end of that turn. Only words that match a claim of the scenario are looked at.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from evaluatorq.conversation.checks import occurrence, state_holds
from evaluatorq.model.cases import Check, Claim
from evaluatorq.model.findings import ClaimFinding
from evaluatorq.model.results import SimulationResult
from evaluatorq.records.states import state_after


def claims_of(claims: Sequence[Claim], result: SimulationResult) -> list[ClaimFinding]:
    """Every statement found, in the order in which they were made."""
    found = [
        ClaimFinding(
            words=match.group(),
            message_index=index,
            turn=sum(row.role == "user" for row in result.messages[:index]),
            backed=_backed(claim.requires, index, result),
            requires=_told(claim.requires),
        )
        for claim in claims
        for index, row in enumerate(result.messages)
        if row.role == "assistant" and (match := re.search(claim.says, row.text, re.IGNORECASE))
    ]
    return sorted(found, key=lambda finding: finding.message_index)


def _backed(fact: Check, index: int, result: SimulationResult) -> bool:
    rows = tuple(result.messages)
    if fact.state is None:
        return any(occurrence(fact, place, rows[place], rows) is not None for place in range(index))
    turn = sum(row.role == "user" for row in rows[:index])
    position = next((i for i, seen in enumerate(result.observations) if seen.turn == turn), None)
    if position is None or result.final_state is None:
        return False
    return state_holds(fact.state, state_after(result.final_state, result.observations, position)) is not None


def _told(fact: Check) -> str:
    if fact.tool_called is not None:
        called = fact.tool_called
        arguments = ", ".join(f"{name}={value!r}" for name, value in called.arguments.items())
        return f"a call of {called.name}({arguments})" + (f", {called.outcome}" if called.outcome else "")
    if fact.state is not None:
        return f"the state at {fact.state.pointer or '/'}"
    return "words"
