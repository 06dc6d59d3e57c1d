"""What a persona, a scenario and a datapoint must look like, as rules over plain JSON values.

A rule yields every problem it finds, each with its place and what would be right. The models are lenient, so that saved
runs of any age load; these rules hold for what people write, in files and in Python.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from difflib import get_close_matches
from enum import StrEnum
from typing import get_args

from pydantic import JsonValue, TypeAdapter

from evaluatorq.model import expectations
from evaluatorq.model.cases import (
    CommunicationStyle,
    ConversationStrategy,
    CriterionType,
    CulturalContext,
    EmotionalArc,
    InputFormat,
    Party,
    StartingEmotion,
)
<<<<<<< ours
from evaluatorq.model.worlds import MockAnswer, MockFault, OutsideCall, OutsideEvent, ToolRules
from evaluatorq.store.model_rules import model_rule
from evaluatorq.store.rules import (
    Fields,
    Problem,
    Rule,
    all_of,
    any_text,
    anything,
    boolean,
    choice,
    list_of,
    mapping_of,
    near_or_known,
    one_of_keys,
    pattern,
    pointer,
    record,
    registered,
    shown,
    text,
    trait,
)
=======

Keys = tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class Problem:
    """What is wrong, and where below the value that was looked at."""

    reason: str
    keys: Keys = ()

    def under(self, key: str | int) -> Problem:
        """The same problem, seen from one level further up."""
        return Problem(self.reason, (key, *self.keys))


Rule = Callable[[JsonValue], Iterable[Problem]]
Fields = Mapping[str, Rule]


def shown(value: JsonValue) -> str:
    """A value as a message names it."""
    match value:
        case None:
            return "nothing"
        case bool() | int() | float():
            text = json.dumps(value)
            return text if len(text) < 40 else f"{text[:12]}... ({len(text)} digits)"
        case str():
            return repr(value if len(value) < 60 else f"{value[:57]}...")
        case list():
            return "a list"
        case _:
            return f"a mapping (of {', '.join(list(value)[:3])})" if value else "an empty mapping"


def near_or_known(word: str, known: Iterable[str]) -> str:
    """The name that was probably meant, else all of them."""
    names = list(known)
    near = get_close_matches(word, names, n=1)
    return f"did you mean {near[0]}?" if near else f"known are {', '.join(names)}"


# ---------------------------------------------------------------- rules for one value


def text(value: JsonValue) -> Iterator[Problem]:
    """Words that are not blank."""
    if isinstance(value, str):
        if not value.strip():
            yield Problem("is blank; write what it should say")
    elif isinstance(value, dict):
        yield Problem(f"is {shown(value)}, not text; in YAML, text with a colon in it needs quotes")
    elif isinstance(value, bool | int | float):
        yield Problem(f"is {shown(value)}, not text; put it in quotes")
    else:
        yield Problem(f"is {shown(value)}, not text")


def any_text(value: JsonValue) -> Iterator[Problem]:
    """Words, or none."""
    return iter(()) if value == "" else text(value)


def trait(value: JsonValue) -> Iterator[Problem]:
    """A number from 0 to 1."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        yield Problem(f"is {shown(value)}; write a number from 0 to 1")
    elif not 0 <= value <= 1:
        yield Problem(f"is {shown(value)}; a trait runs from 0 to 1")


def boolean(value: JsonValue) -> Iterator[Problem]:
    """True or false."""
    if not isinstance(value, bool):
        yield Problem(f"is {shown(value)}; write true or false")


def count(value: JsonValue) -> Iterator[Problem]:
    """A whole number from 0."""
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        yield Problem(f"is {shown(value)}; write a whole number from 0")


def anything(_: JsonValue) -> Iterator[Problem]:
    """Any JSON value."""
    return iter(())


def pattern(value: JsonValue) -> Iterator[Problem]:
    """A regular expression."""
    if not isinstance(value, str) or not value.strip():
        yield from text(value)
        return
    try:
        if re.compile(value, re.IGNORECASE).match(""):
            yield Problem(f"{value!r} also finds nothing at all, so it always holds; take out what makes it optional")
    except (re.error, OverflowError, RecursionError) as error:
        yield Problem(f"is not a regular expression: {error}; a backslash before a sign takes it literally")


def pointer(value: JsonValue) -> Iterator[Problem]:
    """A JSON pointer."""
    if not isinstance(value, str):
        yield Problem(f"is {shown(value)}; write a JSON pointer such as /orders/A1/status")
    elif value and not value.startswith("/"):
        yield Problem(f"is {shown(value)}; a JSON pointer is empty or starts with '/', such as /orders/A1/status")
    elif re.search(r"~(?![01])", value):
        yield Problem(f"is {shown(value)}; in a JSON pointer '~' is written ~0 and a '/' inside a key ~1")


def registered(value: JsonValue) -> Iterator[Problem]:
    """The plain name of something that code registers; a case file cannot name code."""
    if not isinstance(value, str) or not value.strip():
        yield from text(value)
    elif not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_-]*", value):
        yield Problem(
            f"is {shown(value)}; give the plain name of a registered environment, such as orders: a case file names "
            "no module and no path"
        )


def choice(options: Iterable[str]) -> Rule:
    """One of some words."""
    words = list(options)

    def rule(value: JsonValue) -> Iterator[Problem]:
        if value not in words:
            near = get_close_matches(value, words, n=1) if isinstance(value, str) else ()
            yield Problem(
                f"is {shown(value)}; allowed are {', '.join(words)}" + (f"; did you mean {near[0]}?" if near else "")
            )

    return rule


# ---------------------------------------------------------------- rules for what holds values


def list_of(item: Rule, what: str) -> Rule:
    """A list that holds at least one."""

    def rule(value: JsonValue) -> Iterator[Problem]:
        if not isinstance(value, list):
            yield Problem(f"is {shown(value)}; write a list of {what}")
            return
        if not value:
            yield Problem(f"is empty; list at least one of {what}, or leave it out")
        for position, entry in enumerate(value):
            yield from (problem.under(position) for problem in item(entry))

    return rule


def mapping_of(item: Rule, what: str) -> Rule:
    """A mapping from names of one's own."""

    def rule(value: JsonValue) -> Iterator[Problem]:
        if not isinstance(value, dict):
            yield Problem(f"is {shown(value)}; write a mapping of {what}")
            return
        for key, entry in value.items():
            yield from (problem.under(key) for problem in item(entry))

    return rule


def record(noun: str, required: Fields, optional: Fields) -> Rule:
    """A mapping with known keys. A required one must be there; an optional one may be null."""
    known = {**required, **optional}

    def rule(value: JsonValue) -> Iterator[Problem]:
        if not isinstance(value, dict):
            yield Problem(f"is {shown(value)}, not {noun}; write a mapping with {', '.join(required or known)}")
            return
        for key in required:
            if value.get(key) is None:
                yield Problem(f"is missing; {noun} needs it", (key,))
        for key, entry in value.items():
            if key not in known:
                yield Problem(f"is no key of {noun}; {near_or_known(key, known)}", (key,))
            elif entry is not None:
                yield from (problem.under(key) for problem in known[key](entry))

    return rule


def all_of(*rules: Rule) -> Rule:
    """Several rules about one value; the later ones are asked only when the first finds nothing."""

    def rule(value: JsonValue) -> Iterator[Problem]:
        for each in rules:
            problems = list(each(value))
            yield from problems
            if problems:
                return

    return rule


def one_of_keys(*names: str) -> Rule:
    """Exactly one of these keys says something."""

    def rule(value: JsonValue) -> Iterator[Problem]:
        given = [name for name in names if isinstance(value, dict) and value.get(name) is not None]
        if len(given) != 1:
            yield Problem(f"gives {' and '.join(given) or 'nothing'}; give exactly one of {', '.join(names)}")

    return rule

>>>>>>> theirs

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


# ---------------------------------------------------------------- the three kinds of cases


def _words(enum: type[StrEnum]) -> Rule:
    return choice(member.value for member in enum)


def _script_line(value: JsonValue) -> Iterable[Problem]:
    return () if value is None else text(value)


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
    "opens": choice(get_args(Party)),
    "environment": registered,
    "setup": anything,
    "events": model_rule(TypeAdapter(list[OutsideEvent]), "an outside event", OutsideEvent, OutsideCall),
    "tools": model_rule(TypeAdapter(dict[str, ToolRules]), "a tool's rules", ToolRules, MockAnswer, MockFault),
    "expect": model_rule(TypeAdapter(expectations.Expectations), "an expectation", *_EXPECTED),
    "claims": list_of(_CLAIMED, "claims"),
}

DATAPOINT_FIELDS: Fields = {"id": text, "user_system_prompt": any_text, "first_message": any_text, "sample": count}


def _one_goal(value: JsonValue) -> Iterator[Problem]:
    if isinstance(value, dict) and value.get("goal_check") is not None and value.get("goal_state") is not None:
        yield Problem("stands beside goal_check; the goal is decided by one of the two", ("goal_state",))


persona_rule = record("a persona", PERSONA_REQUIRED, PERSONA_OPTIONAL)
scenario_rule = all_of(record("a scenario", SCENARIO_REQUIRED, SCENARIO_OPTIONAL), _one_goal)

PERSONA_KEYS = frozenset((*PERSONA_REQUIRED, *PERSONA_OPTIONAL))
SCENARIO_KEYS = frozenset((*SCENARIO_REQUIRED, *SCENARIO_OPTIONAL))
DATAPOINT_MARKS = frozenset(("persona", "scenario", "inputs", "persona_name", "scenario_name"))

__all__ = [
    "DATAPOINT_MARKS", "DATAPOINT_TEXTS", "PERSONA_KEYS", "PERSONA_OPTIONAL", "PERSONA_REQUIRED", "SCENARIO_KEYS",
    "SCENARIO_OPTIONAL", "SCENARIO_REQUIRED", "Fields", "Problem", "Rule", "anything", "near_or_known", "persona_rule",
    "record", "scenario_rule", "shown", "text",
]  # fmt: skip
