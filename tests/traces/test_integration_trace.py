"""An envelope around an unchanged trace tells decisions from commits, and each effect by its state and receipt."""

from __future__ import annotations

import json
from importlib.resources import files

import pytest
from jsonschema import Draft202012Validator
from trace_samples import SAMPLES, Sample, call, checked, made, shop

from evaluatorq.environments.toolbox import ToolRefused, tool
from evaluatorq.errors import ConfigError, SchemaError
from evaluatorq.export import integration_trace, read_integration_trace
from evaluatorq.model.integration import Receipt
from evaluatorq.records.trace import trace_of
from evaluatorq.records.trace_case import content_hash
from evaluatorq.records.trace_schema import integration_schema
from evaluatorq.testing import a_datapoint, crew_of, verdict


def published() -> Draft202012Validator:
    path = files("evaluatorq") / "_schemas" / "integration-trace-1.schema.json"
    return Draft202012Validator(json.loads(path.read_text(encoding="utf-8")))


@pytest.mark.parametrize("name", SAMPLES)
def test_every_envelope_fits_its_schema_and_leaves_the_trace_alone(name: str) -> None:
    envelope = integration_trace(made(name))
    document = json.loads(json.dumps(envelope.document()))
    published().validate(document)
    assert document["trace"] == made(name).document()
    assert read_integration_trace(document).document() == envelope.document()


def test_a_receipt_of_no_effect_is_refused_and_not_lost() -> None:
    with pytest.raises(ConfigError, match="no effect of call 'call_9' for a receipt; there is call_2"):
        integration_trace(made("refund"), receipts={"call_9": Receipt(id="r")})
    with pytest.raises(ConfigError, match="it has none"):
        integration_trace(made("cap"), receipts={"call_1": Receipt(id="r")})


def test_the_published_schema_is_the_models() -> None:
    assert published().schema == integration_schema()


@tool
def claim(state: dict[str, dict[str, str]], order: str) -> str:
    """Takes an order."""
    if order == "broken":
        raise RuntimeError("the line is dead")
    raise ToolRefused("somebody else took it", code="conflict" if order == "taken" else "not_allowed")


def test_each_effect_goes_through_states_of_its_own() -> None:
    world = shop()
    toolbox = type(world)(world.state, [*world._functions.values(), claim])
    lines = [
        call("look_up", 1, order="A1"),
        call("refund", 2, order="A1"),
        call("claim", 3, order="taken"),
        call("claim", 4, order="broken"),
        call("claim", 5, order="x"),
        call("refund", 6, order="A1"),
        "Done.",
    ]
    sample = Sample(a_datapoint(), crew_of(target=lines, judge=[verdict(stop=True)], environment=lambda: toolbox))
    events = sample.events()
    trace = checked(trace_of(sample.plan, 0, events[:-4]))
    receipt = Receipt(id="remote-7", version="3")
    effects = integration_trace(trace, receipts={"call_2": receipt}).effects
    assert [(effect.call_id, effect.state, effect.reason) for effect in effects] == [
        ("call_2", "accepted", None),
        ("call_3", "conflicted", "conflict"),
        ("call_4", "failed", "tool_error"),
        ("call_5", "failed", "not_allowed"),
        ("call_6", "proposed", None),
    ]
    assert effects[0].receipt == receipt
    assert effects[1].receipt is not None
    assert effects[1].receipt.content_hash is not None
    assert effects[4].receipt is None


def test_a_decision_is_no_commit() -> None:
    interrupted = integration_trace(made("refund", 5))
    assert interrupted.decision_produced is None
    assert [effect.state for effect in interrupted.effects] == ["proposed"]
    assert integration_trace(made("refund")).decision_produced is True


def test_versions_and_states_are_listed() -> None:
    trace = made("refund")
    state = {"orders": {"A1": {"revision": 2}}}
    trace = trace.model_copy(
        update={
            "snapshots": {"s0": content_hash(state), "s3": "sha256:" + "0" * 64},
            "states": {content_hash(state): state},
        }
    )
    envelope = integration_trace(trace, identities={"profile": "shop/2"})
    assert envelope.resources.before == {"/orders/A1": 2}
    assert envelope.closure.missing == ("sha256:" + "0" * 64,)
    assert envelope.identities["profile"] == "shop/2"


def test_another_version_or_another_trace_is_refused() -> None:
    document = integration_trace(made("refund")).document()
    with pytest.raises(SchemaError, match="needs a newer evaluatorq"):
        read_integration_trace({**document, "schema": "evaluatorq.integration-trace/2"})
    with pytest.raises(SchemaError, match="is not the one that was wrapped"):
        read_integration_trace({**document, "trace": made("cap").document()})
