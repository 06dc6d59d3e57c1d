"""Writing a record and reading it again gives the same record, for every model that is ever on disk."""

from __future__ import annotations

import importlib
import math
import pkgutil
import types
from collections.abc import Mapping
from datetime import UTC, datetime
from enum import Enum
from pathlib import Path
from typing import Annotated, Literal, Union, get_args, get_origin

import annotated_types as at
import pytest
from hypothesis import HealthCheck, given, reject, settings
from hypothesis import strategies as st
from pydantic import AwareDatetime, BaseModel, JsonValue, TypeAdapter, ValidationError
from pydantic.fields import FieldInfo

import evaluatorq.model
import evaluatorq.records
from evaluatorq.model import cases
from evaluatorq.model.base import Published, Record, Strict
from evaluatorq.model.events import EVENT, Event
from evaluatorq.records.training_tagged import Template
from evaluatorq.store.runs import read_run

TEXT = st.text(st.characters(exclude_categories=("Cs",)), max_size=12)
NUMBERS = st.floats(allow_nan=False, allow_infinity=False, width=32)
JSON: st.SearchStrategy[JsonValue] = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**12), 10**12) | NUMBERS | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=6,
)
TIMES = st.datetimes(datetime(2000, 1, 1), datetime(2100, 1, 1), timezones=st.just(UTC))  # noqa: DTZ001  bounds are naive


def modules() -> list[types.ModuleType]:
    return [
        importlib.import_module(f"{package.__name__}.{found.name}")
        for package in (evaluatorq.model, evaluatorq.records)
        for found in pkgutil.iter_modules(package.__path__)
        if found.name != "trace"  # a document of its own, tested where it is made
    ]


def models() -> list[type[BaseModel]]:
    found = {
        value
        for module in modules()
        for value in vars(module).values()
        if isinstance(value, type)
        and issubclass(value, BaseModel)
        and value.__module__.startswith(("evaluatorq.model.", "evaluatorq.records."))
    }
    kept = found - {Published, Record, Strict}
    return sorted((model for model in kept if not model.__name__.startswith("_")), key=lambda model: model.__name__)


# ---------------------------------------------------------------- a strategy for any annotation


def of_type(annotation: object, limits: tuple[object, ...] = ()) -> st.SearchStrategy[object]:
    """Values as JSON would hold them."""
    if annotation in (JsonValue, object):
        return JSON
    origin, args = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return of_type(args[0], (*limits, *flattened(args[1:])))
    if origin in (Union, types.UnionType):
        return st.one_of(*(of_type(arg, limits) for arg in args))
    if origin is Literal:
        return st.sampled_from(args)
    if origin in (list, tuple):
        return st.lists(of_type(args[0]), max_size=3)
    if origin in (dict, Mapping):
        return st.dictionaries(of_type(args[0]), of_type(args[1]), max_size=3)
    if annotation is None or annotation is type(None):
        return st.none()
    if isinstance(annotation, type):
        return of_class(annotation, limits)
    raise NotImplementedError(annotation)


def flattened(metadata: tuple[object, ...]) -> list[object]:
    return [item for entry in metadata for item in (getattr(entry, "metadata", None) or [entry])]


def of_class(annotation: type, limits: tuple[object, ...]) -> st.SearchStrategy[object]:
    if issubclass(annotation, BaseModel):
        return st.deferred(lambda: of_model(annotation))
    if issubclass(annotation, Enum):
        return st.sampled_from([member.value for member in annotation])
    if annotation is bool:
        return st.booleans()
    low = next((item.ge for item in limits if isinstance(item, at.Ge)), None)
    low = next((item.gt + 1 for item in limits if isinstance(item, at.Gt)), low)
    high = next((item.le for item in limits if isinstance(item, at.Le)), None)
    if annotation is int:
        return st.integers(low if low is not None else -(10**9), 10**9)
    if annotation is float:
        return (
            NUMBERS.filter(lambda value: (low is None or value >= low) and (high is None or value <= high))
            if (high is None)
            else st.floats(low if low is not None else -math.inf, high, allow_nan=False, width=32)
        )
    if annotation in (datetime, AwareDatetime):
        return TIMES
    if annotation is str:
        pattern = next((item.pattern for item in limits if hasattr(item, "pattern")), None)
        return TEXT if pattern is None else st.from_regex(str(pattern), fullmatch=True)
    raise NotImplementedError(annotation)


def of_field(field: FieldInfo) -> st.SearchStrategy[object]:
    return of_type(field.annotation, tuple(flattened(tuple(field.metadata))))


STATE = st.one_of(
    st.fixed_dictionaries({"pointer": st.just("/a/b"), "equals": JSON.filter(lambda value: value is not None)}),
    st.fixed_dictionaries({"pointer": st.just(""), "one_of": st.lists(JSON, max_size=3)}),
    st.just({"pointer": "/a", "absent": True}),
)
TOOL = st.fixed_dictionaries({"name": TEXT, "arguments": st.dictionaries(TEXT, JSON, max_size=2)})
KINDS = ("user", "reasoning", "said", "call", "result")
SPECIAL: dict[type[BaseModel], st.SearchStrategy[object]] = {
    cases.StateCheck: STATE,
    cases.Check: st.one_of(
        st.fixed_dictionaries({"agent_says": TEXT}),
        st.fixed_dictionaries({"user_says": TEXT}),
        st.fixed_dictionaries({"tool_called": TOOL}),
        st.fixed_dictionaries({"state": STATE}),
    ),
    Template: st.fixed_dictionaries(
        {"name": TEXT, "tags": st.permutations("abcde").map(lambda tags: dict(zip(KINDS, tags, strict=True)))},
        optional={"separator": TEXT, "train_tags": st.booleans()},
    ),
}
"""Records that hold exactly one of several members, or members that go together."""


def of_model(model: type[BaseModel]) -> st.SearchStrategy[object]:
    if model in SPECIAL:
        return SPECIAL[model]
    required = {name: of_field(field) for name, field in model.model_fields.items() if field.is_required()}
    optional = {name: of_field(field) for name, field in model.model_fields.items() if not field.is_required()}
    bulky = BULKY if model.__module__.startswith("evaluatorq.model.") else {}
    for name in required.keys() & bulky:
        required[name] = st.lists(st.sampled_from(bulky[name]), max_size=2)
    return st.fixed_dictionaries(required, optional={n: s for n, s in optional.items() if n not in bulky})


PUBLISHED = read_run(Path(__file__).parents[1] / "data" / "published_runs" / "two_turns_20261130-151616.json")
BULKY = {
    "results": [result.model_dump(mode="json") for result in PUBLISHED.results],
    "datapoints": [datapoint.model_dump(mode="json") for datapoint in PUBLISHED.datapoints or ()],
}
"""Members that are whole records, which have a test of their own; here they are real ones."""


# ---------------------------------------------------------------- the properties


def made(model: type[BaseModel], value: object) -> BaseModel:
    try:
        return model.model_validate(value)
    except ValidationError:
        reject()


@pytest.mark.filterwarnings("ignore:Generating overly large repr")  # what is drawn may be long; it is shown on failure
@pytest.mark.parametrize("model", models(), ids=lambda model: model.__name__)
def test_writing_and_reading_is_identity(model: type[BaseModel]):
    @settings(max_examples=8, suppress_health_check=list(HealthCheck), database=None)
    @given(of_model(model))
    def holds(value: object) -> None:
        record = made(model, value)
        text = record.model_dump_json()
        assert model.model_validate_json(text) == record
        assert model.model_validate(record.model_dump(mode="json")) == record
        assert model.model_validate_json(text).model_dump_json() == text

    holds()


@settings(max_examples=60, suppress_health_check=list(HealthCheck), database=None)
@given(st.data())
def test_an_event_is_read_as_what_it_was(data: st.DataObject):
    adapter: TypeAdapter[Event] = EVENT
    kind = data.draw(st.sampled_from(get_args(get_args(Event)[0])))
    record = made(kind, data.draw(of_model(kind)))
    assert adapter.validate_json(record.model_dump_json()) == record


def test_all_models_that_are_on_disk_or_printed_are_among_them():
    names = {model.__name__ for model in models()}
    assert names >= {
        "SimulationRun", "SimulationResult", "TurnMetrics", "Usage", "Message", "ToolCall", "InputText", "InputImage",
        "InputFile", "ResponseTrace", "Persona", "Scenario", "Criterion", "SimulationDatapoint", "CriteriaMeta",
        "CriterionVerdict", "Judgment", "RunManifest", "StageRecord", "RunPlan", "SimulationRecommendation",
        "Comparison", "GateReport", "GateRules", "MetricsSummary", "SampleReport",
    }  # fmt: skip
