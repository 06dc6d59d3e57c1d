"""Scores that are read off facts: whether expectations were met, and whether what the agent said it did is true.

None exists where nothing was stated: no expectations are not met ones.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from evaluatorq.model.results import SimulationResult
from evaluatorq.ports import Score

CLAIMS_IN_PROSE = "claims_in_prose"
"""The score of a run in which a model looks for claims."""


class NothingToScore(ValueError):  # noqa: N818  a state of the case, not a mistake
    """The conversation holds nothing that this score is about."""


def expectations_met(result: SimulationResult) -> Score:
    """1.0 when every expectation of the scenario held, else 0.0 with each failure."""
    report = result.expectations
    if report is None:
        raise NothingToScore("the scenario expects nothing")
    if report.met is None:
        raise NothingToScore("the conversation was broken off, so its expectations could not be measured")
    failures = [{**failure.model_dump(mode="json"), "text": failure.text} for failure in report.failures]
    return Score(1.0 if report.met else 0.0, {"failures": [*failures]})


def operational_claims(result: SimulationResult) -> Score:
    """The share of the agent's statements about what it did that a fact backs; 1.0 where it stated nothing."""
    if result.claims is None:
        raise NothingToScore("the scenario names no claims")
    backed = sum(finding.backed for finding in result.claims)
    share = backed / len(result.claims) if result.claims else 1.0
    return Score(share, {"claims": [finding.model_dump(mode="json") for finding in result.claims]})


def claims_in_prose(result: SimulationResult) -> Score:
    """The share of the statements that a model found in the agent's words which its calls back.

    There is no score where nobody looked, where no deed was claimed, and where all that is not backed is unknown.
    """
    if result.prose_claims is None:
        raise NothingToScore(
            "what the agent claims is not known: no claims_model was given, or its answer could not be had"
        )
    if not result.prose_claims:
        raise NothingToScore("the agent claimed no deed")
    count = Counter(claim.standing for claim in result.prose_claims)
    if count["unknown"] and not count["unbacked"]:
        unknown = next(claim for claim in result.prose_claims if claim.standing == "unknown")
        raise NothingToScore(f"{count['unknown']} of {count.total()} claims could not be checked: {unknown.why}")
    share = count["backed"] / (count["backed"] + count["unbacked"])
    return Score(share, {"claims": [claim.model_dump(mode="json") for claim in result.prose_claims]})


FACT_SCORES: dict[str, Callable[[SimulationResult], Score]] = {
    "expectations_met": expectations_met,
    "operational_claims": operational_claims,
    CLAIMS_IN_PROSE: claims_in_prose,
}
