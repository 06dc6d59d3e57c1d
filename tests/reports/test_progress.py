"""Progress: a fold over what a run reports."""

from __future__ import annotations

from datetime import UTC, datetime

from sample_results import HELD, SEEN, dead, result

from evaluatorq.model.cases import CommunicationStyle, Persona, Scenario, SimulationDatapoint
from evaluatorq.model.events import CallFailed, Ended, Started, UserSpoke
from evaluatorq.model.runs import RunPlan
from evaluatorq.model.usage import Usage
from evaluatorq.reports.progress import Progress

NOW = datetime(2026, 1, 1, tzinfo=UTC)
PERSONA = Persona(
    name="Ann", patience=0, assertiveness=0, politeness=0, technical_level=0,
    communication_style=CommunicationStyle.TERSE, background="",
)  # fmt: skip
PLAN = RunPlan(
    run_id="r", run_name="nightly", created_at=NOW,
    datapoints=tuple(
        SimulationDatapoint(id=str(i), persona=PERSONA, scenario=Scenario(name="S", goal="g")) for i in range(3)
    ),
)  # fmt: skip


def started() -> Progress:
    progress = Progress()
    progress.begun(PLAN)
    return progress


def test_it_knows_what_is_in_flight_and_what_is_done():
    progress = started()
    for row in range(2):
        progress.append(f"r:{row}", Started(at=NOW))
    progress.append("r:0", Ended(at=NOW, terminated_by="judge", ended_by="judge", reason="done"))
    progress.finished(result(HELD, row=0))
    assert (progress.done, progress.in_flight, progress.total) == (1, 1, 3)
    assert progress.counts() == "1 passed"


def test_it_counts_every_token_also_of_calls_that_failed():
    progress = started()
    progress.append("r:0", UserSpoke(at=NOW, text="hi", usage=Usage(total_tokens=5)))
    failed = CallFailed(
        at=NOW, component="judge", code="bad_verdict", message="prose", final=False, usage=Usage(total_tokens=7)
    )
    progress.append("r:0", failed)
    assert (progress.tokens, progress.retries) == (12, 1)


def test_a_line_of_the_log_tells_one_conversation_without_control_characters():
    progress = started()
    progress.finished(result(SEEN, row=1, persona="\x1b[31mRed"))
    line = progress.log_line(progress.summary.lines[-1])
    assert line == "1/3 ✗ failed [1] \\x1b[31mRed · Late parcel, 2 turns: happened but must not: behaviour 2"


def test_the_useful_words_at_the_end_of_a_long_reason_are_in_the_line():
    progress = started()
    reason = "http://127.0.0.1:9/chat: ClientConnectorError: Cannot connect to host 127.0.0.1:9 ssl:default: refused!"
    progress.finished(dead("target", row=0, reason=reason))
    assert progress.log_line(progress.summary.lines[-1]).endswith(f"the agent failed: {reason}")


def test_faults_are_told_with_their_party():
    progress = started()
    progress.finished(dead("judge", row=0))
    assert "judge failed: it broke" in progress.log_line(progress.summary.lines[-1])
