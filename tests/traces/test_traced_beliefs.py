"""What an agent held is in the trace of its conversation, and comes out of it again."""

from __future__ import annotations

from evaluatorq.export import traces_of_run
from evaluatorq.records.trace_events import events_of
from evaluatorq.simulation import simulate_sync


def test_assessments_beside_words_survive_the_trace_and_fold_to_the_same_record() -> None:
    results = simulate_sync(pack="triage", offline=True, only="*chest-pain*", save=True)
    [trace] = list(traces_of_run("latest"))
    held = [step.assessment.value for step in trace.steps if step.kind == "target" and step.assessment is not None]
    assert held == [3, 2, 2]
    back = [event.assessment.value for event in events_of(trace) if event.kind == "target_replied" and event.assessment]
    assert back == held
    assert results[0].ended_by == trace.outcome.ended_by == "agent"
