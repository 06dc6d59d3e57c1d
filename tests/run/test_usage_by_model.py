"""What was spent is kept by model beside by role: every answer under the model that gave it, and all of it once."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from evaluatorq.errors import CallError
from evaluatorq.model.runs import Limits
from evaluatorq.model.spending import NO_SPENDING, Bill
from evaluatorq.model.usage import NO_USAGE, NOT_TOLD, Usage
from evaluatorq.ports import JudgeReply, UserReply
from evaluatorq.reports.document import Document
from evaluatorq.reports.html import html_report
from evaluatorq.reports.markdown_report import markdown_report
from evaluatorq.reports.terminal import About, render_summary
from evaluatorq.reports.view import Summary
from evaluatorq.run.engine import RunOptions, resume_plan, run_plan
from evaluatorq.run.outcome import RunOutcome
from evaluatorq.store.paths import journals_dir
from evaluatorq.store.runs import read_run
from evaluatorq.testing import a_datapoint, a_plan, crew_of, verdict


def tokens(count: int, cost: float | None = None) -> Usage:
    return Usage(input_tokens=count, total_tokens=count, total_cost=cost, calls=1, priced_calls=int(cost is not None))


def judged(reply: JudgeReply, usage: Usage, model: str) -> JudgeReply:
    return replace(reply, usage=usage, model=model)


CREW = crew_of(
    user=[
        UserReply("one", usage=tokens(10, 0.5), model="fast"),
        CallError("empty_reply", "nothing", retryable=True, usage=tokens(7), model="fast"),
        UserReply("two", usage=tokens(20, 0.25), model="second choice"),
    ],
    target=["Hello there", "Yes of course"],
    judge=[judged(verdict(), tokens(100), "smart"), judged(verdict(stop=True), tokens(200), "smart")],
)


async def made(folder: Path) -> RunOutcome:
    bill = Bill()
    bill.answered("generation", tokens(1000), "fast")
    bill.failed("generation", CallError("refusal", "no", usage=tokens(5), model="fast"))
    bill.answered("first_messages", tokens(3))
    plan = a_plan(a_datapoint(id="dp_0"), limits=Limits(max_turns=3)).model_copy(update={"spent": bill.spending})
    return await run_plan(plan, CREW, RunOptions(runs_dir=folder, keep=True))


async def test_each_model_has_what_its_own_answers_cost_and_the_sums_are_the_run(tmp_path: Path) -> None:
    outcome = await made(tmp_path)
    (result,) = outcome.results
    fast = tokens(10, 0.5) + tokens(7)
    assert result.usage_by_model == {
        "fast": fast,
        "second choice": tokens(20, 0.25),
        "smart": tokens(100) + tokens(200),
    }
    assert sum(result.usage_by_model.values(), NO_USAGE) == result.token_usage
    assert outcome.path is not None
    run = read_run(outcome.path)
    assert run.usage_by_model["fast"] == fast + tokens(1000) + tokens(5)
    assert run.usage_by_model[NOT_TOLD] == tokens(3)
    assert sum(run.usage_by_model.values(), NO_USAGE) == run.token_usage_total
    assert (run.usage_by_model["fast"].priced_calls, run.usage_by_model["fast"].calls) == (1, 4)


async def test_the_journal_alone_tells_it_again(tmp_path: Path) -> None:
    outcome = await made(tmp_path)
    assert outcome.path is not None
    before = read_run(outcome.path)
    folder = journals_dir(tmp_path) / str(before.run_id)
    outcome.path.unlink()
    again = await resume_plan(folder, CREW, RunOptions(runs_dir=tmp_path, keep=True))
    assert again.read().usage_by_model == before.usage_by_model


async def test_a_summary_splits_by_model_only_where_there_are_several(tmp_path: Path) -> None:
    outcome = await made(tmp_path)
    assert outcome.path is not None
    run = read_run(outcome.path)
    told = " ".join(render_summary(Summary.of(run.results), About.run(run), width=100, color=False).split())
    assert "Models fast 1,022, 0.5000 USD (part of the calls); " in told
    assert "smart 300; second choice 20, 0.2500 USD; not told 3" in told
    one = run.model_copy(update={"usage_by_model": {"fast": tokens(10)}})
    assert "Models" not in render_summary(Summary.of(run.results), About.run(one), width=100, color=False)


async def test_reports_have_a_line_for_each_model_and_none_where_there_is_one(tmp_path: Path) -> None:
    outcome = await made(tmp_path)
    assert outcome.path is not None
    run = read_run(outcome.path)
    one = run.model_copy(update={"usage_by_model": {"fast": tokens(10)}})
    for render, row in (
        (markdown_report, "| `second choice` | 20 |"),
        (html_report, '<th scope="row">second choice</th>'),
    ):
        assert row in render(Document.of(run.results, About.run(run), run))
        plain = [result.model_copy(update={"usage_by_model": {}}) for result in one.results]
        assert "second choice" not in render(Document.of(plain, About.run(one), one))


def test_an_answer_that_cost_nothing_is_not_booked() -> None:
    bill = Bill()
    bill.answered("generation", NO_USAGE, "fast")
    assert bill.spending == NO_SPENDING
