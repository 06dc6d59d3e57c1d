"""New runs of old ones: forked, judged again, scored again. Each says what it came from and proves itself."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

import pytest

from evaluatorq.errors import ConfigError, ReplayError
from evaluatorq.model.cases import Criterion
from evaluatorq.model.judgments import CriterionVerdict, Judgment
from evaluatorq.model.messages import Message
from evaluatorq.model.results import SimulationResult
from evaluatorq.model.usage import Usage
from evaluatorq.run.outcome import RunOutcome
from evaluatorq.simulation import again
from evaluatorq.simulation.api import SimulationResults, resume_simulation, simulate
from evaluatorq.store.paths import get_sim_runs_dir, journals_dir
from evaluatorq.store.runs import find_run, read_run
from evaluatorq.testing import a_datapoint, a_persona, a_scenario

GOLDEN = Path(__file__).parents[1] / "golden" / "kettle_20260329-013000.json"
BUNDLED = {"offline": True, "only": "Refund within*"}


async def recorded(**options: object) -> SimulationResults:
    return await simulate(**{**BUNDLED, "target": "demo", "save": True, **options})  # type: ignore[arg-type]


def saved(outcome: RunOutcome) -> list[SimulationResult]:
    assert outcome.path is not None
    return read_run(outcome.path).results


# ---------------------------------------------------------------- forks


async def test_a_fork_keeps_what_was_said_and_lets_another_agent_answer() -> None:
    source = await recorded(run_name="before")
    outcome = await again.fork("before", 2, overrides={"target": "demo:flawed"})
    forked = saved(outcome)
    assert len(forked) == len(source)
    for old, new in zip(source, forked, strict=True):
        opening = next(i for i, message in enumerate(old.messages) if i and message.role == "user")
        assert new.messages[: opening + 1] == old.messages[: opening + 1]
        assert new.messages[opening + 1 :] != old.messages[opening + 1 :]
        assert new.origin is not None
        assert (new.origin.kind, new.origin.thread_id, new.origin.turn) == ("fork", old.thread_id, 2)
        assert new.attempts == 1
    run = read_run(outcome.path)  # type: ignore[arg-type]
    assert (run.target, run.replayed_from) == ("demo:flawed", source.run.run_id)
    assert again.verify(outcome.run_id).holds


async def test_what_is_judged_or_scored_again_does_not_take_the_name_of_its_source() -> None:
    await recorded(run_name="before")
    (source,) = get_sim_runs_dir().glob("before_*.json")
    judged = await again.rejudge("before", overrides={"offline": True, "save": True})
    scored = await again.rescore("before", ["turn_efficiency"])
    assert [read_run(path).run_name for path in (judged.path, scored)] == ["before-rejudged", "before-rescored"]  # type: ignore[arg-type]
    assert find_run("before") == source
    twice = await again.rejudge("before", overrides={"offline": True, "save": True, "run_name": "before"})
    assert find_run("before") == twice.path, "unless it is asked to"


async def test_a_fork_does_not_take_the_name_of_its_source() -> None:
    source = await recorded(run_name="before")
    outcome = await again.fork("before", 2, row=3)
    assert read_run(outcome.path).run_name == "before-fork"  # type: ignore[arg-type]
    assert again.facts_of("before").header.run_id == source.run.run_id
    named = await again.fork("before", 2, row=3, overrides={"run_name": "what-if"})
    assert read_run(named.path).run_name == "what-if"  # type: ignore[arg-type]


async def test_a_fork_with_the_same_agent_says_the_same() -> None:
    source = await recorded(run_name="before")
    for turn in (1, 2, 3):
        forked = saved(await again.fork("before", turn))
        assert [result.messages for result in forked] == [result.messages for result in source]
        assert [result.metadata["criteria_meta"] for result in forked] == [
            result.metadata["criteria_meta"] for result in source
        ]


async def test_one_conversation_is_forked_alone() -> None:
    source = await recorded(run_name="before")
    (forked,) = saved(await again.fork("before", 2, row=3, overrides={"target": "demo:flawed"}))
    assert forked.origin is not None
    assert forked.origin.thread_id == source[3].thread_id
    assert forked.metadata["datapoint_id"] == source[3].metadata["datapoint_id"]


async def test_what_cannot_be_forked_says_why() -> None:
    await recorded(run_name="before")
    with pytest.raises(ConfigError, match="no conversation of before has a turn 9"):
        await again.fork("before", 9)
    with pytest.raises(ConfigError, match="conversation 1 of before does not have a turn 9"):
        await again.fork("before", 9, row=1)
    with pytest.raises(ConfigError, match="there is no conversation 77"):
        await again.fork("before", 1, row=77)

    class Remembering:
        stateful = True

        def new(self) -> Remembering:
            return self

        async def respond(self, messages: Sequence[Message], *, thread_id: str) -> str:
            return "hello"

    with pytest.raises(ConfigError, match="keeps a memory of its own"):
        await again.fork("before", 2, overrides={"target": Remembering()})
    assert len(list(get_sim_runs_dir().glob("*.json"))) == 1


@pytest.mark.filterwarnings("ignore:.*Olaf")
async def test_a_run_without_a_journal_is_not_forked() -> None:
    get_sim_runs_dir().mkdir(parents=True)
    shutil.copy(GOLDEN, get_sim_runs_dir())
    with pytest.raises(ReplayError, match="without its journal"):
        await again.fork("kettle", 1, overrides={"target": "demo"})


# ---------------------------------------------------------------- judged again


class Strict:
    """A judge of the published interface that ends every conversation at once and finds every criterion broken."""

    def __init__(self) -> None:
        self.asked: list[int] = []

    def update_context(self, **_: object) -> None:
        pass

    def get_usage(self) -> Usage:
        return Usage(total_tokens=7, calls=1)

    def reset_usage(self) -> None:
        pass

    async def evaluate(self, messages: Sequence[Message]) -> Judgment:
        self.asked.append(len(messages))
        verdict = CriterionVerdict(criterion_id="criteria_0", occurred=False)
        return Judgment(should_terminate=True, reason="enough", goal_achieved=False, criteria_verdicts=[verdict])


def a_case(i: int):
    scenario = a_scenario(
        criteria=[Criterion(description="says hello", type="must_happen")], script=["one", "two", "three"]
    )
    return a_datapoint(scenario, persona=a_persona(f"P{i}", background="b"), id=f"dp_{i}")


def agent(messages: Sequence[Message]) -> str:
    return f"Answer number {len(messages)}"


async def test_another_judge_speaks_on_the_same_words_and_does_not_end_them() -> None:
    source = await recorded(only=None, datapoints=[a_case(0), a_case(1)], target=agent, max_turns=3, run_name="before")
    assert [result.turn_count for result in source] == [3, 3]
    judge = Strict()
    outcome = await again.rejudge("before", overrides={"judge": judge, "offline": True, "save": True})
    judged = saved(outcome)
    assert [result.messages for result in judged] == [result.messages for result in source]
    assert [result.metadata["criteria_meta"][0]["passed"] for result in judged] == [False, False]  # type: ignore[index,call-overload]
    assert [result.origin.thread_id for result in judged if result.origin] == [result.thread_id for result in source]
    assert all(result.usage_by_role.keys() <= {"judge"} for result in judged), "the others were paid for already"
    assert again.verify(outcome.run_id).holds
    found = again.compare("before", outcome.run_id)
    assert not any("judged" in warning for warning in found.warnings), "the words are the same on both sides"


async def test_the_same_checks_judge_the_same() -> None:
    source = await recorded(run_name="before", only=None)
    judged = saved(await again.rejudge("before", overrides={"offline": True, "save": True}))
    for old, new in zip(source, judged, strict=True):
        kept = (
            "messages",
            "goal_achieved",
            "criteria_results",
            "criteria_audit",
            "expectations",
            "final_state",
            "observations",
        )
        assert {name: getattr(new, name) for name in kept} == {name: getattr(old, name) for name in kept}
        assert (new.terminated_by, new.ended_by, new.turn_count) == (old.terminated_by, old.ended_by, old.turn_count)


async def test_conversations_that_broke_off_are_judged_as_far_as_they_came() -> None:
    def breaks(messages: Sequence[Message]) -> str:
        if len(messages) > 2:
            raise RuntimeError("boom")
        return "Hello there, my friend"

    source = await recorded(
        only=None, datapoints=[a_case(0)], target=breaks, max_target_retries=0, run_name="before",
        raise_on_execution_failure=False,
    )  # fmt: skip
    (judged,) = saved(await again.rejudge("before", overrides={"judge": Strict(), "offline": True, "save": True}))
    assert judged.messages == source[0].messages
    assert (judged.terminated_by, judged.failed_component) == ("error", "target")


@pytest.mark.filterwarnings("ignore:.*Olaf")
async def test_a_run_of_the_published_package_is_judged_again_from_its_file() -> None:
    get_sim_runs_dir().mkdir(parents=True)
    shutil.copy(GOLDEN, get_sim_runs_dir())
    before = read_run(get_sim_runs_dir() / GOLDEN.name).results
    outcome = await again.rejudge("kettle", overrides={"judge": Strict(), "offline": True, "save": True})
    judged = saved(outcome)
    assert [[m.text for m in result.messages] for result in judged] == [[m.text for m in r.messages] for r in before]
    assert again.verify(outcome.run_id).holds


async def test_a_judgement_that_was_stopped_goes_on_with_the_same_recording() -> None:
    source = await recorded(run_name="before")
    outcome = await again.rejudge("before", overrides={"offline": True, "save": True})
    whole = saved(outcome)
    assert outcome.path is not None
    outcome.path.unlink()
    journal = journals_dir(get_sim_runs_dir()) / outcome.run_id / "0001.jsonl"
    lines = journal.read_bytes().splitlines(keepends=True)
    journal.write_bytes(b"".join(lines[: len(lines) // 2]))
    resumed = saved(await resume_simulation(outcome.run_id))
    assert [result.messages for result in resumed] == [result.messages for result in source]
    assert [result.criteria_results for result in resumed] == [result.criteria_results for result in whole]


# ---------------------------------------------------------------- scored again


def brevity(result: SimulationResult) -> float:
    return 1 / result.turn_count


async def test_other_scores_ask_nobody_and_change_nothing_else() -> None:
    source = await recorded(run_name="before")
    path = await again.rescore("before", [brevity, "turn_efficiency"], name="short")
    run = read_run(path)
    assert run.evaluator_names == ["brevity", "turn_efficiency"]
    assert run.scorer_averages["brevity"] == pytest.approx(sum(1 / r.turn_count for r in source) / len(source))
    assert (run.run_name, run.total_results) == ("short", len(source))
    assert run.run_id != source.run.run_id
    for old, new in zip(source, run.results, strict=True):
        assert new.messages == old.messages
        assert new.metadata["evaluator_scores"].keys() == {"brevity", "turn_efficiency"}  # type: ignore[union-attr]
        assert new.origin is not None
        assert (new.origin.kind, new.origin.run, new.origin.thread_id) == ("rescore", source.run.run_id, old.thread_id)
    assert run.datapoints == source.run.datapoints


async def test_a_scorer_that_fails_leaves_a_gap_and_not_a_zero() -> None:
    def picky(result: SimulationResult) -> float:
        if result.row == 0:
            raise ValueError("not this one")
        return 0.5

    await recorded(run_name="before")
    run = read_run(await again.rescore("before", [picky]))
    assert (run.scorer_averages["picky"], run.score_counts["picky"].left_out) == (0.5, 1)
    assert run.results[0].metadata["evaluator_errors"] == {"picky": "ValueError: not this one"}


async def test_an_unknown_scorer_is_a_mistake() -> None:
    await recorded(run_name="before")
    with pytest.raises(ConfigError, match="did you mean goal_achieved"):
        await again.rescore("before", ["goal_acheived"])


# ---------------------------------------------------------------- in hand


async def test_runs_in_hand_are_compared_and_gated_without_a_file() -> None:
    good = await simulate(**BUNDLED, target="demo")  # type: ignore[arg-type]
    bad = await simulate(**BUNDLED, target="demo:flawed")  # type: ignore[arg-type]
    found = again.compare(good, bad.run)
    assert (found.word, found.overall.down) == ("worse", 6)
    assert again.gate(good).state == "holds"
    assert again.gate(bad, {"min_pass_rate": 0.5}).state == "broken"
    assert again.gate(bad, baseline=good).state == "broken"
