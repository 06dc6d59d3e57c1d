"""An agent that ends the conversation of its own choice: by a tool that its case declares for that."""

from __future__ import annotations

from collections.abc import Sequence

from evaluatorq.conversation.checks import was_rejected
from evaluatorq.conversation.requests import Stop
from evaluatorq.model.cases import Scenario
from evaluatorq.model.messages import Message

ENDED_BY_CHOICE = Stop("judge", "agent", "The agent ended the conversation.")


def ended_by_choice(scenario: Scenario, messages: Sequence[Message]) -> bool:
    """Since the user last spoke, the agent used a tool that ends the conversation, and was not refused."""
    ends = () if scenario.cognition is None else scenario.cognition.ends
    if not ends:
        return False
    rows = _since_user(messages)
    accepted = {row.tool_call_id for row in rows if row.role == "tool" and not was_rejected(row)}
    return any(call.function.name in ends and call.id in accepted for row in rows for call in row.tool_calls or ())


def spoke_last(messages: Sequence[Message]) -> bool:
    """The user spoke, and the agent's last row after that has words."""
    rows = _since_user(messages)
    own = [row for row in rows if row.role == "assistant"]
    return len(rows) < len(messages) and bool(own) and own[-1].is_spoken


def _since_user(messages: Sequence[Message]) -> Sequence[Message]:
    start = next((i for i in range(len(messages) - 1, -1, -1) if messages[i].role == "user"), -1)
    return messages[start + 1 :]
