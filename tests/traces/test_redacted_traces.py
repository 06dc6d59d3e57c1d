"""What was taken out before anything was written is in no trace and no corpus, and verdicts are those from before."""

from __future__ import annotations

import json
from pathlib import Path

from trace_samples import checked, shop

from evaluatorq.export import to_training_jsonl, traces_of_run
from evaluatorq.model.cases import Criterion
from evaluatorq.model.messages import assistant, tool_call
from evaluatorq.model.trace import Trace
from evaluatorq.ports import TargetReply
from evaluatorq.records.redaction import Redactor, parse_rules
from evaluatorq.replay import replay_sync
from evaluatorq.run.engine import RunOptions, run_plan
from evaluatorq.simulation import simulate
from evaluatorq.testing import a_datapoint, a_plan, a_scenario, crew_of, verdict

EMAIL = "lucia@example.com"


async def redacted_trace() -> Trace:
    scenario = a_scenario(
        criteria=[Criterion.model_validate({"must_happen": "repeats the address", "check": {"agent_says": EMAIL}})],
        goal_state=[{"pointer": "/addresses/A1", "equals": EMAIL}],
    )
    lines = [
        TargetReply((assistant(None, [tool_call("c1", "set_address", {"order": "A1", "address": EMAIL})]),)),
        f"I wrote down {EMAIL} for you.",
    ]
    judge = [verdict(stop=True, goal=True)]
    crew = crew_of(user=[f"Write to {EMAIL} please"], target=lines, judge=judge, environment=shop)
    options = RunOptions(save=True, redactor=Redactor(parse_rules(["email"]), key=b"k"))
    await run_plan(a_plan(a_datapoint(scenario)), crew, options)
    (trace,) = traces_of_run("latest")
    return checked(trace)


async def test_a_trace_holds_nothing_that_was_redacted_and_says_that_something_was() -> None:
    trace = await redacted_trace()
    assert EMAIL not in trace.line().decode()
    assert "redacted" in {caveat.code for caveat in trace.caveats or ()}


async def test_verdicts_and_labels_are_those_from_before_the_redaction() -> None:
    trace = await redacted_trace()
    assert trace.outcome.labels.goal_state_reached is True
    assert trace.outcome.labels.checks_held is True
    assert trace.outcome.goal_reached is True
    assert [criterion.state for criterion in trace.verdicts.criteria or ()] == ["pass"]


async def test_a_redacted_conversation_replays() -> None:
    import anyio.to_thread

    trace = await redacted_trace()
    again = await anyio.to_thread.run_sync(replay_sync, trace)
    assert again.drifts == ()


async def test_a_run_without_a_model_whose_agent_is_kept_back_replays_as_it_was_written() -> None:
    import anyio.to_thread

    case = {"target": "demo:flawed", "offline": True, "only": "Refund after the window closed", "save": True}
    await simulate(**case, redact=["agent"], evaluator_names=["criteria_met", "expectations_met"])
    for trace in traces_of_run("latest"):
        again = await anyio.to_thread.run_sync(lambda: replay_sync(trace, collect=True))  # noqa: B023
        assert again.drifts == ()
        assert {step.kind for number, step in enumerate(trace.steps) if again.modes[number] == "substituted"} >= {
            "user",
            "judge",
        }


async def test_no_corpus_leaks_what_was_redacted_or_trains_on_what_stands_for_it(tmp_path: Path) -> None:
    trace = await redacted_trace()
    for style in ("tagged", "chat"):
        out = tmp_path / f"{style}.jsonl"
        card = to_training_jsonl([trace], out=out, format=style)
        assert card["redaction"] == {"redacted": 1}
        assert all(EMAIL not in path.read_text(encoding="utf-8") for path in tmp_path.glob("*.*") if path.is_file())
    row = json.loads((tmp_path / "tagged.jsonl").read_text(encoding="utf-8"))
    trained = [row["text"][s["start"] : s["end"]] for s in row["segments"] if not s["loss_mask"]]
    assert trained == ['set_address {"order": "A1", "address": "', '"}', "I wrote down ", " for you."]
    messages = json.loads((tmp_path / "chat.jsonl").read_text(encoding="utf-8"))["messages"]
    assert not any(message["train"] for message in messages)
