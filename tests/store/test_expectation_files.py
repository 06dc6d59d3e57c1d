"""``expect``, ``events``, ``tools`` and ``claims`` in case files: read as written, and faults told with their line."""

from __future__ import annotations

from pathlib import Path

import pytest

from evaluatorq.errors import CaseError
from evaluatorq.store.cases import check_datapoints, load_datapoints, load_scenarios, read_cases
from evaluatorq.store.datapoint_rows import export_datapoints_to_jsonl
from evaluatorq.testing import a_datapoint, a_persona

WHOLE = """
name: Refund
goal: Get a refund
environment: orders
events:
  - before_turn: 2
    call: {name: add_note, arguments: {order_id: A1, text: called}}
  - {before_turn: 3, patch: {today: "2026-04-01"}}
tools:
  find_order: {max_calls: 3, max_calls_per_turn: 1}
  refund_order:
    mocks:
      - {on_call: 1, fails: unavailable}
      - {when: {order_id: A1}, returns: {refunded: 5}}
      - {chance: 0.5, returns: null}
claims:
  - says: have refunded
    requires: {tool_called: {name: refund_order, outcome: accepted}}
expect:
  tools: {in_order: [find_order, {name: refund_order, arguments: {order_id: A1}}]}
  forbid: {events: [refunded_late]}
  state: [{pointer: /orders/A1/status, equals: refunded}, {pointer: /refunds/A1/reason, equals: null}]
  counts: {/refunds: {at_most: 1}}
  turns:
    - {turn: 1, tools: [], state: [{pointer: /orders/A1, unchanged: true}]}
    - {turn: last, outcome: succeeds}
"""


def test_a_scenario_says_what_must_be_true_and_survives_every_trip(tmp_path: Path) -> None:
    (tmp_path / "case.yaml").write_text(WHOLE)
    (scenario,) = load_scenarios(tmp_path / "case.yaml")
    assert scenario.expect is not None
    assert scenario.tools is not None
    assert scenario.events is not None
    assert [event.before_turn for event in scenario.events] == [2, 3]
    assert scenario.expect.tools is not None
    assert scenario.expect.tools.required == {"find_order", "refund_order"}
    assert scenario.tools["refund_order"].mocks[0].fails is not None
    case = a_datapoint(scenario, persona=a_persona(background="A cook."))
    check_datapoints([case])
    export_datapoints_to_jsonl([case], tmp_path / "rows.jsonl")
    (read,) = load_datapoints(tmp_path / "rows.jsonl")
    assert read.scenario == scenario


@pytest.mark.parametrize(
    ("old", "new", "field", "line", "says"),
    [
        ("in_order:", "inorder:", "expect.tools.inorder", 20, "did you mean in_order?"),
        ("{turn: 1, tools", "{turns: 1, tools", "expect.turns[0].turn", 25, "is missing"),
        ("equals: refunded", "equal: refunded", "expect.state[0].equal", 22, "did you mean equals?"),
        ("pointer: /orders/A1, u", "pointer: orders/A1, u", "expect.turns[0].state[0].pointer", 25, "starts with '/'"),
        ("at_most: 1", "at_most: -1", "expect.counts./refunds.at_most", 23, "is -1; it must be greater than"),
        ("outcome: succeeds", "outcome: works", "expect.turns[1].outcome", 26, "allowed are succeeds, fails"),
        ("unchanged: true", "unchanged: true, absent: true", "expect.turns[0].state[0]", 25, "exactly one of equals"),
        ("before_turn: 2", "before_turn: 0", "events[0].before_turn", 6, "is 0; it must be greater than"),
        ("patch: {today", "patches: {today", "events[1].patches", 8, "did you mean patch?"),
        ("max_calls: 3", "max_call: 3", "tools.find_order.max_call", 10, "did you mean max_calls?"),
        ("chance: 0.5", "chance: 5", "tools.refund_order.mocks[2].chance", 15, "less than or equal to 1"),
        (", returns: {refunded: 5}", "", "tools.refund_order.mocks[1]", 14, "gives no answer"),
        ("says: have refunded", "says: (", "claims[0].says", 17, "not a regular expression"),
        ("requires: {tool_called", "requires: {called", "claims[0].requires.called", 18, "did you mean tool_called?"),
        ("[refunded_late]", "refunded_late", "expect.forbid.events", 21, "write a list"),
    ],
)  # fmt: skip
def test_a_fault_is_told_with_its_line_and_field(
    tmp_path: Path, old: str, new: str, field: str, line: int, says: str
) -> None:
    assert WHOLE.count(old) == 1
    (tmp_path / "case.yaml").write_text(WHOLE.replace(old, new))
    errors = read_cases([tmp_path / "case.yaml"], "scenarios").errors
    assert (errors[0].field, errors[0].line) == (field, line)
    assert says in errors[0].reason


def test_what_is_expected_and_forbidden_at_once_is_refused(tmp_path: Path) -> None:
    (tmp_path / "case.yaml").write_text("name: a\ngoal: b\nexpect:\n  tools: [x]\n  forbid: {tools: [x]}\n")
    with pytest.raises(CaseError, match=r"case\.yaml:3: expect: x: expected and forbidden at once"):
        load_scenarios(tmp_path / "case.yaml")
