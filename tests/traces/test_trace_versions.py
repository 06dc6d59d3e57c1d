"""Older traces are upgraded by a pure chain of converters; newer ones, and what is no trace, are refused."""

from __future__ import annotations

import copy
import json
from pathlib import Path

import pytest
from pydantic import JsonValue
from trace_samples import SAMPLES, checked, made

from evaluatorq.errors import SchemaError
from evaluatorq.model.trace import TRACE_SCHEMA
from evaluatorq.records.trace import trace_of
from evaluatorq.records.trace_events import events_of
from evaluatorq.records.trace_versions import CONVERTERS, PRESENT, read_trace, upgrade

GOLDEN = Path(__file__).parents[1] / "golden"


def prototype(name: str = "own_tools") -> dict[str, JsonValue]:
    document: dict[str, JsonValue] = json.loads((GOLDEN / "trace-0" / f"{name}.json").read_text(encoding="utf-8"))
    return document


@pytest.mark.parametrize("name", ["own_tools", "outside"])
def test_an_old_trace_becomes_a_whole_trace_of_the_present_version(name: str) -> None:
    trace = checked(read_trace(prototype(name)))
    assert trace.document() == made(name).document()
    assert trace_of(SAMPLES[name]().plan, 0, events_of(trace)).document() == trace.document()


def test_upgrading_changes_nothing_that_it_is_given() -> None:
    document = prototype()
    before = copy.deepcopy(document)
    upgrade(document)
    assert document == before


def test_a_trace_of_the_present_version_is_left_as_it_is() -> None:
    document = made("refund").document()
    assert upgrade(document) == document


def test_there_is_a_converter_for_every_older_version() -> None:
    assert sorted(CONVERTERS) == list(range(PRESENT))


@pytest.mark.parametrize("tag", ["evaluatorq.trace/2", "evaluatorq.trace/10"])
def test_a_newer_version_is_refused_and_not_relabelled(tag: str) -> None:
    with pytest.raises(SchemaError, match=rf"{tag} is newer than this version reads \({TRACE_SCHEMA}\); upgrade"):
        upgrade({**made("refund").document(), "schema": tag})


@pytest.mark.parametrize("tag", [None, 1, "", "evaluatorq.trace/", "evaluatorq.trace/-1", "other/1"])
def test_what_is_no_trace_is_refused(tag: JsonValue) -> None:
    with pytest.raises(SchemaError, match="this is no trace"):
        upgrade({"schema": tag})


def test_a_broken_trace_is_told_with_its_place() -> None:
    document = made("refund").document()
    document["row"] = "first"
    with pytest.raises(SchemaError, match="row: Input should be a valid integer"):
        read_trace(document)
