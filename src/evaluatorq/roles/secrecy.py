"""Proof, by how prompts are made, that a case's truth reaches neither its simulated user nor its agent.

The user's prompt is made twice, once with another truth: equal prompts cannot depend on it. The agent is sent nothing
but the transcript and its tools, and is seated without the truth (``evaluatorq.run.crew.without_truth``). What is left
is a case that tells its secret itself, in words that the user is given.
"""

from __future__ import annotations

from collections.abc import Iterable

from evaluatorq.conversation.checks import value_at
from evaluatorq.errors import CaseError
from evaluatorq.model.cases import Scenario, SimulationDatapoint
from evaluatorq.model.rules import Problem, dotted
from evaluatorq.records.secrecy import secrecy_of
from evaluatorq.roles.prompts_user import user_system

_OTHER_TRUTH = "another truth than this case has"


def is_independent(datapoint: SimulationDatapoint) -> bool:
    """The simulated user's prompt is the same whatever the truth is."""
    persona, scenario = datapoint.persona, datapoint.scenario
    other = scenario.model_copy(update={"truth": _OTHER_TRUTH, "hidden": None, "setup": None, "cognition": None})
    return user_system(persona, scenario) == user_system(persona, other)


def secret_told(datapoint: SimulationDatapoint) -> Problem | None:
    """What is wrong with a case whose user would be told something that its truth hides, and with one that hides what
    its truth does not have; the place is below the scenario.
    """
    scenario = datapoint.scenario
    if lacking := _not_there(scenario):
        return lacking
    if scenario.truth is None:
        return None
    told = secrecy_of(datapoint, ()).told_by_the_case
    if told:
        reason = (
            f"scenario {scenario.name!r} hides {told[0]} of its truth and tells it to its user; leave it out of goal, "
            "context, knows and script, or name in hidden only what is to be found out"
        )
        return Problem(reason, ("truth",))
    if not is_independent(datapoint):
        return Problem(f"the user's prompt of {scenario.name!r} depends on its truth", ("truth",))
    return None


def _not_there(scenario: Scenario) -> Problem | None:
    """A place that is not there would hide nothing, and what was meant would not be looked for."""
    for pointer in scenario.hidden or ():
        if value_at(scenario.truth, pointer) is None:
            lacks = "has no truth" if scenario.truth is None else f"has no {pointer} in its truth"
            return Problem(f"scenario {scenario.name!r} hides {pointer or 'all of it'} and {lacks}", ("hidden",))
    return None


def check_secrets(datapoints: Iterable[SimulationDatapoint]) -> None:
    """``CaseError`` for the first case that does not keep its secret, as ``secret_told`` has it."""
    for datapoint in datapoints:
        if problem := secret_told(datapoint):
            raise CaseError(problem.reason, field=dotted(problem.keys))
