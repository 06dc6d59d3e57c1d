"""An answer's cost is what a maintained list says, or unknown."""

from __future__ import annotations

import subprocess
import sys

import pytest

from evaluatorq.llm.pricing import priced
from evaluatorq.model.usage import Usage

PUBLIC = "https://api.openai.com/v1"
ASKED = Usage(input_tokens=1_000_000, output_tokens=1_000_000, total_tokens=2_000_000, calls=1)


def test_a_known_model_at_its_provider_has_a_price() -> None:
    found = priced(ASKED, "gpt-4o-mini", PUBLIC)
    assert found.total_cost == pytest.approx(0.15 + 0.60)
    assert (found.input_cost, found.output_cost) == (pytest.approx(0.15), pytest.approx(0.60))
    assert (found.priced_calls, found.cost_is_partial) == (1, False)


def test_what_came_from_the_cache_costs_less() -> None:
    half = ASKED.model_copy(update={"cached_tokens": 500_000})
    assert priced(half, "gpt-4o-mini", PUBLIC).input_cost == pytest.approx(0.075 + 0.0375)


def test_at_a_gateway_the_name_says_whose_model_it_is() -> None:
    assert priced(ASKED, "openai/gpt-4o-mini", "https://gateway.example.test/v1").total_cost == pytest.approx(0.75)


@pytest.mark.parametrize(
    ("model", "base_url"),
    [
        ("gpt-9000-made-up", PUBLIC),
        ("gpt-4o-mini", "https://gateway.example.test/v1"),
        ("nobody/gpt-4o-mini", "https://gateway.example.test/v1"),
        ("gpt-4o-mini", "http://127.0.0.1:8000/v1"),
        ("openai/gpt-4o-mini", "http://localhost/v1"),
    ],
)
def test_what_nobody_knows_is_unknown_and_not_zero(model: str, base_url: str) -> None:
    found = priced(ASKED, model, base_url)
    assert (found.total_cost, found.priced_calls) == (None, 0)


@pytest.mark.parametrize(
    ("asked", "answered_by", "cost"),
    [
        ("openai/gpt-4o", "openai/gpt-4o-mini", 0.75),  # a second choice
        ("openai/gpt-4o", "gpt-4o-mini", 0.75),
        ("openai/gpt-4o-mini", "gpt-4o-mini-2024-07-18", 0.75),  # a version of it
        ("openai/gpt-4o-mini", "gpt-4o-mini-of-this-gateway", 0.75),
        ("openai/gpt-4o-mini", "a-model-of-somebody", None),
        ("openai/gpt-4o-mini", None, 0.75),
    ],
)
def test_the_price_is_that_of_the_model_that_answered(asked: str, answered_by: str | None, cost: float | None) -> None:
    found = priced(ASKED, asked, "https://gateway.example.test/v1", answered_by=answered_by)
    assert found.total_cost == (None if cost is None else pytest.approx(cost))


def test_what_the_endpoint_says_about_cost_goes_before_the_list() -> None:
    told = ASKED.model_copy(update={"total_cost": 9.0, "priced_calls": 1})
    assert priced(told, "gpt-4o-mini", PUBLIC) is told


def test_the_list_is_loaded_only_when_a_price_is_looked_up() -> None:
    code = "import sys, evaluatorq.llm.client, evaluatorq.llm.chat; print('genai_prices' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "False\n"
