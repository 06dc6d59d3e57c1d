"""Pairs a persona with a scenario, without asking a model."""

from __future__ import annotations

from evaluatorq.model.cases import Persona, Scenario, SimulationDatapoint
from evaluatorq.records.fingerprint import case_id
from evaluatorq.roles.prompts_user import persona_block, scenario_block


def datapoint_prompt(persona: Persona, scenario: Scenario) -> str:
    """What ``user_system_prompt`` holds: for readers of data sets; a run makes its own prompt."""
    return "\n\n---\n\n".join((persona_block(persona), scenario_block(scenario)))


def generate_datapoint(persona: Persona, scenario: Scenario, first_message: str = "") -> SimulationDatapoint:
    """The pair as a datapoint. Its id (``dp_`` and 12 hex digits) is the same for the same case."""
    prompt = datapoint_prompt(persona, scenario)
    pair = SimulationDatapoint(
        id="", persona=persona, scenario=scenario, user_system_prompt=prompt, first_message=first_message
    )
    return pair.model_copy(update={"id": case_id(pair)})
