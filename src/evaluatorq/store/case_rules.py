"""What a persona, a scenario and a datapoint must look like, as rules over plain JSON values.

A rule yields every problem it finds, each with its place and what would be right. The models are lenient, so that saved
runs of any age load; these rules hold for what people write, in files and in Python. Records that code made (the
``made_*`` rules) may have blank names, goals, backgrounds and descriptions, as in the published package: code that
leaves one blank means it, while a file that does is not finished.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from difflib import get_close_matches
from enum import StrEnum
from typing import get_args

from pydantic import JsonValue, TypeAdapter

from evaluatorq.model import assessments, cognition, expectations
from evaluatorq.model.cases import (
    AfterScript,
    CommunicationStyle,
    ConversationStrategy,
    CriterionType,
    CulturalContext,
    EmotionalArc,
    InputFormat,
    Party,
    StartingEmotion,
)
from evaluatorq.model.rules import (
    Fields,
    Problem,
    Rule,
    all_of,
    any_text,
    anything,
    boolean,
    choice,
    count,
    list_of,
    mapping_of,
    near_or_known,
    one_of_keys,
    pattern,
    pointer,
    record,
    registered,
    shown,
    string,
    text,
    trait,
)
from evaluatorq.model.type_rules import model_rule
from evaluatorq.model.worlds import MockAnswer, MockFault, OutsideCall, OutsideEvent, ToolRules
from evaluatorq.records.withholding import SCOPE

# ---------------------------------------------------------------- checks and criteria


def _tool(value: JsonValue) -> Iterable[Problem]:
    if isinstance(value, str):
        return text(value)
    return _TOOL(value)


def _claim(value: JsonValue) -> Iterable[Problem]:
    """``equals: null`` is a claim, unless it only pads out another one."""
    if isinstance(value, dict) and "equals" in value and value.get("one_of") is None and value.get("absent") is None:
        return ()
    return one_of_keys("equals", "one_of", "absent")(value)


def _backed(value: JsonValue) -> Iterable[Problem]:
    """As a check, without the parts that a full dump leaves empty."""
    facts = ("tool_called", "state")
    if isinstance(value, dict):
        value = {key: item for key, item in value.items() if key in facts or item is not None}
    return _BACKED(value)


def _true(value: JsonValue) -> Iterator[Problem]:
    if value is not True:
        yield Problem(f"is {shown(value)}; absent takes only true")


def _criterion(value: JsonValue) -> Iterable[Problem]:
    if not isinstance(value, dict):
        return [Problem(f'is {shown(value)}, not a criterion; write must_happen: "what must happen"')]
    short = [kind for kind in get_args(CriterionType) if kind in value]
    if not short and value and not {"type", "description"} & value.keys():
        near = get_close_matches(next(iter(value)), get_args(CriterionType), n=1)
        right = (
            f"did you mean {near[0]}?" if near else 'write must_happen: "text", with text that has a colon in quotes'
        )
        return [Problem(f"is {shown(value)}, not a criterion; {right}")]
    if not short:
        return _CRITERION(value)
    if len(short) > 1 or "type" in value or "description" in value:
        also = [*short, *(key for key in ("type", "description") if key in value)]
        return [Problem(f"says {' and '.join(also)}; give must_happen, must_not_happen, or type with description")]
    return record("a criterion", {short[0]: text}, _CRITERION_MORE)(value)


_TOOL = record(
    "a tool check",
    {"name": text},
    {"arguments": mapping_of(anything, "arguments"), "outcome": choice(("accepted", "rejected"))},
)
_STATE = all_of(
    record(
        "a state check",
        {"pointer": pointer},
        {"equals": anything, "one_of": list_of(anything, "values"), "absent": _true},
    ),
    _claim,
)
_CHECK = all_of(
    record("a check", {}, {"agent_says": pattern, "user_says": pattern, "tool_called": _tool, "state": _STATE}),
    one_of_keys("agent_says", "user_says", "tool_called", "state"),
)
_CRITERION_MORE = {"evaluator": text, "check": _CHECK, "about": choice(get_args(Party))}
_CRITERION = record("a criterion", {"type": choice(get_args(CriterionType)), "description": text}, _CRITERION_MORE)


_BACKED = all_of(record("a fact", {}, {"tool_called": _tool, "state": _STATE}), one_of_keys("tool_called", "state"))
_CLAIMED = record("a claim", {"says": pattern, "requires": _backed}, {})
_EXPECTED = (
    expectations.Expectations, expectations.TurnClaims, expectations.ToolsClaim, expectations.ToolClaim,
    expectations.Forbidden, expectations.StateClaim, expectations.CountClaim, expectations.ActsClaim,
    expectations.ActClaim, expectations.ResolutionClaim, expectations.UnitClaim,
)  # fmt: skip
_BELIEVED = (
    cognition.Cognition, cognition.AssessmentRule, cognition.ListRule, cognition.AcceptPolicy, cognition.ReadingRule,
    cognition.Detector, assessments.Scale,
)  # fmt: skip


# ---------------------------------------------------------------- the three kinds of cases


def _words(enum: type[StrEnum]) -> Rule:
    return choice(member.value for member in enum)


def _script_line(value: JsonValue) -> Iterable[Problem]:
    return () if value is None else text(value)


def _scope(value: JsonValue) -> Iterable[Problem]:
    if not isinstance(value, str) or not SCOPE.fullmatch(value):
        yield Problem(f"is {shown(value)}; name user, agent, tools or tool:NAME")


PERSONA_REQUIRED: Fields = {
    "name": text,
    "patience": trait,
    "assertiveness": trait,
    "politeness": trait,
    "technical_level": trait,
    "communication_style": _words(CommunicationStyle),
    "background": text,
}
PERSONA_OPTIONAL: Fields = {"emotional_arc": _words(EmotionalArc), "cultural_context": _words(CulturalContext)}

SCENARIO_REQUIRED: Fields = {"name": text, "goal": text}
SCENARIO_OPTIONAL: Fields = {
    "context": any_text,
    "starting_emotion": _words(StartingEmotion),
    "criteria": list_of(_criterion, "criteria"),
    "is_edge_case": boolean,
    "conversation_strategy": _words(ConversationStrategy),
    "ground_truth": any_text,
    "input_format": _words(InputFormat),
    "goal_check": _CHECK,
    "goal_state": list_of(_STATE, "state checks"),
    "knows": mapping_of(text, "facts"),
    "script": list_of(_script_line, "user lines"),
    "after_script": choice(get_args(AfterScript)),
    "opens": choice(get_args(Party)),
    "environment": registered,
    "setup": anything,
    "events": model_rule(TypeAdapter(list[OutsideEvent]), "an outside event", OutsideEvent, OutsideCall),
    "tools": model_rule(TypeAdapter(dict[str, ToolRules]), "a tool's rules", ToolRules, MockAnswer, MockFault),
    "expect": model_rule(TypeAdapter(expectations.Expectations), "an expectation", *_EXPECTED),
    "claims": list_of(_CLAIMED, "claims"),
    "truth": anything,
    "hidden": list_of(pointer, "JSON pointers into the truth"),
    "cognition": model_rule(TypeAdapter(cognition.Cognition), "what the agent believed", *_BELIEVED),
    "redact": list_of(_scope, "those whose texts are not written"),
}

DATAPOINT_FIELDS: Fields = {"id": text, "user_system_prompt": any_text, "first_message": any_text, "sample": count}


def _one_goal(value: JsonValue) -> Iterator[Problem]:
    if isinstance(value, dict) and value.get("goal_check") is not None and value.get("goal_state") is not None:
        yield Problem("stands beside goal_check; the goal is decided by one of the two", ("goal_state",))


def _script_to_follow(value: JsonValue) -> Iterator[Problem]:
    if isinstance(value, dict) and value.get("after_script") is not None and not value.get("script"):
        yield Problem("says what follows the script, and there is none; give script or leave it out", ("after_script",))


persona_rule = record("a persona", PERSONA_REQUIRED, PERSONA_OPTIONAL)
scenario_rule = all_of(record("a scenario", SCENARIO_REQUIRED, SCENARIO_OPTIONAL), _one_goal, _script_to_follow)


def _made_criteria(value: JsonValue) -> Iterable[Problem]:
    return () if value == [] else _MADE_CRITERIA(value)


_MADE_CRITERIA = list_of(
    record("a criterion", {"type": choice(get_args(CriterionType)), "description": string}, _CRITERION_MORE), "criteria"
)
_MADE_SCENARIO: Fields = {**SCENARIO_OPTIONAL, "context": string, "ground_truth": string, "criteria": _made_criteria}
made_persona_rule = record("a persona", {**PERSONA_REQUIRED, "name": string, "background": string}, PERSONA_OPTIONAL)
made_scenario_rule = all_of(
    record("a scenario", {"name": string, "goal": string}, _MADE_SCENARIO), _one_goal, _script_to_follow
)
made_datapoint_rule = record(
    "a datapoint",
    {"persona": made_persona_rule, "scenario": made_scenario_rule},
    {**DATAPOINT_FIELDS, "user_system_prompt": string, "first_message": string},
)

PERSONA_KEYS = frozenset((*PERSONA_REQUIRED, *PERSONA_OPTIONAL))
SCENARIO_KEYS = frozenset((*SCENARIO_REQUIRED, *SCENARIO_OPTIONAL))
DATAPOINT_MARKS = frozenset(("persona", "scenario", "inputs", "persona_name", "scenario_name"))

__all__ = [
    "DATAPOINT_FIELDS", "DATAPOINT_MARKS", "PERSONA_KEYS", "PERSONA_OPTIONAL", "PERSONA_REQUIRED", "SCENARIO_KEYS",
    "SCENARIO_OPTIONAL", "SCENARIO_REQUIRED", "Fields", "Problem", "Rule", "anything", "made_datapoint_rule",
    "made_persona_rule", "made_scenario_rule", "near_or_known", "persona_rule", "record", "scenario_rule", "shown",
    "text",
]  # fmt: skip
