"""Two hundred conversations over real sockets: each verdict and each token is what the endpoint gave."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from evaluatorq.model.judgments import parse_criteria_meta
from evaluatorq.model.results import SimulationResult
from evaluatorq.model.runs import SimulationRun
from evaluatorq.model.usage import NO_USAGE, Usage
from mock_server.served import serving
from mock_server.shell import MODELS, evaluatorq, saved_run, write_cases

CASES = 200
OUR_NAME = {"user": "user_simulator", "target": "target", "judge": "judge"}
Counts = dict[str, dict[str, int]]


class Measured:
    """The run as saved, and what the endpoint counted meanwhile."""

    def __init__(self, folder: Path) -> None:
        write_cases(folder / "cases.jsonl", CASES)
        words = (
            "sim",
            "simulate",
            "-i",
            "cases.jsonl",
            "--openai-model",
            "mock-target",
            *MODELS,
            "--parallelism",
            "20",
        )
        with serving(quote="mixed") as endpoint:
            self.done = evaluatorq(folder, *words, "-q", endpoint=endpoint)
            stats = endpoint.stats()
        self.run = SimulationRun.model_validate(saved_run(folder))
        self.roles: Counts = stats["roles"]  # type: ignore[assignment]
        self.cases: dict[str, Counts] = stats["cases"]  # type: ignore[assignment]
        self.sent: dict[str, dict[str, str]] = stats["verdicts"]  # type: ignore[assignment]

    @property
    def results(self) -> Iterator[tuple[str, SimulationResult]]:
        return ((f"CASE-{row:04}", result) for row, result in enumerate(self.run.results))


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> Measured:
    return Measured(tmp_path_factory.mktemp("counts"))


def figures(usage: Usage) -> tuple[int, int, int, int]:
    return usage.input_tokens, usage.output_tokens, usage.total_tokens, usage.calls


def served(counted: dict[str, int]) -> tuple[int, int, int, int]:
    return counted["prompt"], counted["completion"], counted["charged"], counted["requests"]


def test_the_run_ends_well_and_holds_every_conversation(measured: Measured) -> None:
    assert (measured.done.returncode, measured.done.stderr) == (0, "")
    assert [result.row for result in measured.run.results] == list(range(CASES))


def test_every_verdict_is_the_one_that_was_sent(measured: Measured) -> None:
    met: Counter[str] = Counter()
    for case, result in measured.results:
        for audit in result.criteria_audit:
            kind = measured.sent[case][audit.id]
            met[kind] += 1
            found = (audit.occurred, audit.source == "judge", audit.evidence_verified)
            assert found == ((True, True, True) if kind == "real" else (False, kind == "none", None)), (case, kind)
            assert (audit.refused is not None) == (kind in ("fake", "user", "abstain")), (case, kind)
    assert met == Counter(kind for sent in measured.sent.values() for kind in sent.values())
    assert min(met.values()) >= 100, "confirmed, refused and unaudited verdicts all have to be there"


def test_what_was_not_audited_neither_fails_nor_breaks_a_rule(measured: Measured) -> None:
    for case, result in measured.results:
        metas, invalid = parse_criteria_meta(result.metadata["criteria_meta"])
        assert invalid == []
        for meta in metas:
            kind = measured.sent[case][meta.id]
            occurred = kind == "real"
            expected = kind not in ("real", "none") or occurred == (meta.type == "must_happen")
            assert meta.passed is expected
            assert (meta.id in result.rules_broken) == (not expected)


def test_tokens_are_the_endpoints_for_every_role_and_every_conversation(measured: Measured) -> None:
    assert {role: figures(measured.run.usage_by_role[ours]) for role, ours in OUR_NAME.items()} == {
        role: served(counted) for role, counted in measured.roles.items()
    }
    for case, result in measured.results:
        ours = {role: figures(result.usage_by_role[name]) for role, name in OUR_NAME.items()}
        assert ours == {role: served(counted) for role, counted in measured.cases[case].items()}
        assert result.token_usage_known


def test_turns_roles_and_conversations_add_up_to_the_same_total(measured: Measured) -> None:
    for _, result in measured.results:
        assert sum((turn.token_usage for turn in result.turn_metrics), NO_USAGE) == result.token_usage
        assert sum(result.usage_by_role.values(), NO_USAGE) == result.token_usage
        assert sum(result.usage_by_model.values(), NO_USAGE) == result.token_usage
    run = measured.run
    assert run.token_usage_total == sum((result.token_usage for result in run.results), NO_USAGE)
    assert run.token_usage_total == sum(run.usage_by_role.values(), NO_USAGE)
    assert run.token_usage_total == sum(run.usage_by_model.values(), NO_USAGE)
    assert len(run.usage_by_model) == len(OUR_NAME), "each role asks a model of its own"
