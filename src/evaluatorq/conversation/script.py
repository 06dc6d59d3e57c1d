"""Lines of the user that a case fixes: which of them comes next, and whether they were the last ones.

A datapoint's first message is none of the script's lines: it comes before them.
"""

from __future__ import annotations

from collections.abc import Sequence

from evaluatorq.conversation.requests import Stop
from evaluatorq.model.cases import Scenario, SimulationDatapoint
from evaluatorq.model.messages import Message

SCRIPT_OVER = Stop("judge", "user", "The user's script was used up.")


def fixed_line(datapoint: SimulationDatapoint, messages: Sequence[Message], at: int) -> tuple[str | None, bool]:
    """The line fixed for the user's next turn, if any, and whether it is the first message; ``at`` lines are used."""
    if datapoint.first_message and not any(message.role == "user" for message in messages):
        return datapoint.first_message, True
    script = datapoint.scenario.script or []
    return (script[at] if at < len(script) else None), False


def script_is_over(scenario: Scenario, at: int) -> bool:
    """The user has said every line and, as the case has it, says nothing after them."""
    return scenario.after_script == "stop" and at >= len(scenario.script or [])
