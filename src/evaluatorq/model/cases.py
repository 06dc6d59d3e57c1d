"""Who talks about what: personas, scenarios, criteria and the datapoints that pair them.

Fields and enums are the published ones; ours (``check``, ``about``, ``script``, ``after_script``, ``opens``, ``knows``,
``goal_check``, ``goal_state``, ``environment``, ``setup``, ``events``, ``tools``, ``expect``, ``claims``) are optional
and ignored by other readers. Models read leniently so that saved runs of any age load; ``evaluatorq.store.cases`` is
strict about what people write.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Literal

from pydantic import Field, JsonValue, model_validator

from evaluatorq.model.base import Record, Strict
from evaluatorq.model.cognition import Cognition
from evaluatorq.model.expectations import Expectations
from evaluatorq.model.worlds import OutsideEvent, ToolRules

CriterionType = Literal["must_happen", "must_not_happen"]
Party = Literal["agent", "user"]
AfterScript = Literal["simulate", "stop"]


class CommunicationStyle(StrEnum):
    """How a persona writes."""

    FORMAL = "formal"
    CASUAL = "casual"
    TERSE = "terse"
    VERBOSE = "verbose"


class StartingEmotion(StrEnum):
    """How the simulated user feels when the conversation starts."""

    NEUTRAL = "neutral"
    FRUSTRATED = "frustrated"
    CONFUSED = "confused"
    HAPPY = "happy"
    URGENT = "urgent"


class EmotionalArc(StrEnum):
    """How the mood develops."""

    STABLE = "stable"
    ESCALATING = "escalating"
    DE_ESCALATING = "de_escalating"
    VOLATILE = "volatile"
    MANIPULATIVE = "manipulative"
    HOSTILE = "hostile"


class CulturalContext(StrEnum):
    """How directly a persona communicates."""

    NEUTRAL = "neutral"
    DIRECT = "direct"
    INDIRECT = "indirect"
    HIGH_CONTEXT = "high_context"
    LOW_CONTEXT = "low_context"
    HIERARCHICAL = "hierarchical"


class ConversationStrategy(StrEnum):
    """How the simulated user goes about the goal."""

    COOPERATIVE = "cooperative"
    TOPIC_SWITCHING = "topic_switching"
    CONTRADICTORY = "contradictory"
    MULTI_INTENT = "multi_intent"
    EVASIVE = "evasive"
    REPETITIVE = "repetitive"
    AMBIGUOUS = "ambiguous"


class InputFormat(StrEnum):
    """The form of what the simulated user sends."""

    PLAIN_TEXT = "plain_text"
    WITH_URL = "with_url"
    WITH_ATTACHMENT = "with_attachment"
    FORM_DATA = "form_data"
    CODE_BLOCK = "code_block"
    MIXED_MEDIA = "mixed_media"


class Persona(Record):
    """Who the simulated user is. The four traits run from 0 to 1."""

    name: str
    patience: float
    assertiveness: float
    politeness: float
    technical_level: float
    communication_style: CommunicationStyle
    background: str
    emotional_arc: EmotionalArc | None = None
    cultural_context: CulturalContext | None = None


class ToolCheck(Strict):
    """A tool is called. ``arguments`` are a subset that must be equal; ``outcome`` also asks how the call went."""

    name: str
    arguments: dict[str, JsonValue] = Field(default_factory=dict)
    outcome: Literal["accepted", "rejected"] | None = None


class StateCheck(Strict):
    """A value in the environment's final state, by JSON pointer (RFC 6901); exactly one claim about it."""

    pointer: str
    equals: JsonValue = None
    one_of: list[JsonValue] | None = None
    absent: Literal[True] | None = None

    @model_validator(mode="after")
    def _one_claim(self) -> StateCheck:
        claims = [name for name in ("one_of", "absent") if getattr(self, name) is not None]
        if self.equals is not None or ("equals" in self.model_fields_set and not claims):
            claims.append("equals")
        if len(claims) != 1:
            raise ValueError(f"give exactly one of equals, one_of, absent (found {', '.join(claims) or 'none'})")
        if self.pointer and not self.pointer.startswith("/"):
            raise ValueError("a JSON pointer is empty or starts with '/'")
        return self


class Check(Strict):
    """A fact that code decides: exactly one of four. It says what *occurred*; the criterion's type gives the polarity.

    ``agent_says`` and ``user_says`` are regular expressions, searched without regard to case.
    """

    agent_says: str | None = None
    user_says: str | None = None
    tool_called: ToolCheck | None = None
    state: StateCheck | None = None

    @model_validator(mode="before")
    @classmethod
    def _tool_by_name(cls, value: object) -> object:
        if isinstance(value, dict) and isinstance(value.get("tool_called"), str):
            return {**value, "tool_called": {"name": value["tool_called"]}}
        return value

    @model_validator(mode="after")
    def _one_fact(self) -> Check:
        given = [
            name for name in ("agent_says", "user_says", "tool_called", "state") if getattr(self, name) is not None
        ]
        if len(given) != 1:
            raise ValueError(
                f"give exactly one of agent_says, user_says, tool_called, state (found {', '.join(given) or 'none'})"
            )
        return self


class Claim(Strict):
    """Words by which an agent says that it did something (a regular expression), and the fact that must back them."""

    says: str
    requires: Check


class Criterion(Record):
    """A behaviour that must happen or must not happen. ``about`` names whose words may prove it."""

    description: str
    type: CriterionType
    evaluator: str | None = None
    check: Check | None = None
    about: Party = "agent"

    @model_validator(mode="before")
    @classmethod
    def _short_form(cls, value: object) -> object:
        """``{must_happen: text}`` is short for ``{type: must_happen, description: text}``."""
        if not isinstance(value, dict):
            return value
        for kind in ("must_happen", "must_not_happen"):
            if kind in value and "type" not in value and "description" not in value:
                rest = {key: item for key, item in value.items() if key != kind}
                return {"description": value[kind], "type": kind, **rest}
        return value


class MustHappenCriterion(Criterion):
    """A criterion whose type is fixed: the behaviour must occur."""

    type: Literal["must_happen"] = "must_happen"

    def __init__(self, description: str, **more: object) -> None:
        super().__init__(**{"description": description, "type": "must_happen", **more})  # type: ignore[arg-type]  # pydantic validates


class MustNotHappenCriterion(Criterion):
    """A criterion whose type is fixed: the behaviour must not occur."""

    type: Literal["must_not_happen"] = "must_not_happen"

    def __init__(self, description: str, **more: object) -> None:
        super().__init__(**{"description": description, "type": "must_not_happen", **more})  # type: ignore[arg-type]  # pydantic validates


class Scenario(Record):
    """The situation and the goal that the simulated user brings.

    ``ground_truth`` reaches the judge only. ``knows`` are facts that the user may give when asked. ``script`` holds
    fixed user lines, sent word for word in order; a ``null`` line is left to the simulator, and so is what follows the
    last one, unless ``after_script: stop`` makes the reply to it the end. ``opens: agent`` lets the agent speak first.
    ``environment`` names a registered environment and ``setup`` its starting state; ``tools`` limits and mocks its
    tools, ``events`` are what others do to it meanwhile. ``expect`` is held against the observations, ``claims``
    against what the agent says that it did. ``truth`` is for the scorers alone; ``hidden`` are JSON pointers to what of
    it must not come out (all of it unless given). ``cognition`` says how to read what the agent believed. ``redact``
    names whose texts are never written: ``user``, ``agent``, ``tools``, ``tool:NAME``.
    """

    name: str
    goal: str
    context: str | None = None
    starting_emotion: StartingEmotion | None = None
    criteria: list[Criterion] | None = None
    is_edge_case: bool | None = None
    conversation_strategy: ConversationStrategy | None = None
    ground_truth: str | None = None
    input_format: InputFormat | None = None
    goal_check: Check | None = None
    goal_state: list[StateCheck] | None = None
    knows: dict[str, str] | None = None
    script: list[str | None] | None = None
    after_script: AfterScript | None = None
    opens: Party | None = None
    environment: str | None = None
    setup: JsonValue = None
    events: list[OutsideEvent] | None = None
    tools: dict[str, ToolRules] | None = None
    expect: Expectations | None = None
    claims: list[Claim] | None = None
    truth: JsonValue = None
    hidden: list[str] | None = None
    cognition: Cognition | None = None
    redact: list[str] | None = None

    @property
    def criterion_list(self) -> tuple[Criterion, ...]:
        """The criteria, empty where there are none."""
        return tuple(self.criteria or ())


class SimulationDatapoint(Record):
    """One persona paired with one scenario. An empty ``first_message`` is left to the simulated user.

    ``sample`` (ours) counts the repeats of a datapoint in one run, from 0; the repeats share its id.
    """

    id: str
    persona: Persona
    scenario: Scenario
    user_system_prompt: str = ""
    first_message: str = ""
    sample: int | None = None


CriterionId = Annotated[str, Field(pattern=r"^criteria_\d+$")]
CRITERION_ID_PATTERN = r"^criteria_\d+$"


def criterion_id_for(index: int) -> str:
    """The id of the criterion at ``index`` (from 0) in its scenario."""
    return f"criteria_{index}"
