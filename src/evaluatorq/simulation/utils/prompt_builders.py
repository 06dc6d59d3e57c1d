"""The published place of the texts that a simulated user is made of."""

from __future__ import annotations

from evaluatorq.roles.prompts_user import persona_block as build_persona_system_prompt
from evaluatorq.roles.prompts_user import scenario_block as build_scenario_user_context
from evaluatorq.simulation.datapoints import datapoint_prompt as build_datapoint_system_prompt
from evaluatorq.simulation.datapoints import generate_datapoint

__all__ = [
    "build_datapoint_system_prompt", "build_persona_system_prompt", "build_scenario_user_context", "generate_datapoint",
]  # fmt: skip
