"""Roles at endpoints of their own: each is asked where it is said to be, with its own key."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path

import pytest

from evaluatorq.simulation.config import SimulationConfig
from evaluatorq.simulation.models import fast_place, smart_place, target_place
from mock_server.served import MockEndpoint, serving
from mock_server.shell import MODELS, evaluatorq, saved_run, write_cases

PLACES = {"user": "--sim-base-url", "judge": "--judge-base-url", "target": "--openai-base-url"}


def asked(endpoint: MockEndpoint) -> set[str]:
    roles = endpoint.stats()["roles"]
    assert isinstance(roles, dict)
    return set(roles)


def test_each_role_is_asked_at_its_own_endpoint(tmp_path: Path) -> None:
    write_cases(tmp_path / "cases.jsonl", 2)
    with ExitStack() as stack:
        endpoints = {role: stack.enter_context(serving()) for role in PLACES}
        where = [word for role, flag in PLACES.items() for word in (flag, endpoints[role].url)]
        done = evaluatorq(
            tmp_path, "sim", "simulate", "-i", "cases.jsonl", "--openai-model", "mock-target", *MODELS, *where, "-q"
        )
        seen = {role: asked(endpoint) for role, endpoint in endpoints.items()}
    assert (done.returncode, done.stderr) == (0, "")
    assert seen == {role: {role} for role in PLACES}
    config = saved_run(tmp_path)["config"]
    assert isinstance(config, dict)
    assert config["judge_base_url"] == endpoints["judge"].url


def test_a_role_has_its_own_key_or_everybodys(monkeypatch: pytest.MonkeyPatch) -> None:
    url = "https://models.example/v1"
    config = SimulationConfig.parse(
        {"target": "demo", "offline": True, "sim_base_url": url, "judge_base_url": url, "openai_base_url": None}
    )
    monkeypatch.setenv("OPENAI_API_KEY", "everybodys")
    monkeypatch.setenv("EVALUATORQ_JUDGE_API_KEY", "the-judges")
    fast, smart = fast_place(config).endpoint(), smart_place(config).endpoint()
    assert fast is not None
    assert smart is not None
    assert (fast.api_key, smart.api_key) == ("everybodys", "the-judges")
    assert target_place(config).endpoint() is None, "a role without a place is asked where all are"
