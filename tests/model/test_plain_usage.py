"""The quick reading of the usage that nearly everybody sends says what the thorough one says."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from evaluatorq.model.usage import Usage

NUMBERS = st.one_of(st.integers(-2, 5), st.floats(allow_nan=True), st.booleans(), st.none(), st.text(max_size=2))
DETAILS = st.one_of(
    st.none(), st.dictionaries(st.sampled_from(["cached_tokens", "reasoning_tokens", "audio_tokens"]), NUMBERS)
)


@given(
    st.fixed_dictionaries(
        {},
        optional={
            "prompt_tokens": NUMBERS,
            "completion_tokens": NUMBERS,
            "total_tokens": NUMBERS,
            "prompt_tokens_details": DETAILS,
            "completion_tokens_details": DETAILS,
        },
    )
)
def test_a_member_that_means_nothing_changes_nothing(usage: dict[str, object]) -> None:
    assert Usage.extract({"usage": usage}) == Usage.extract({"usage": {**usage, "of_no_meaning": 1}})


def usages() -> st.SearchStrategy[Usage]:
    counts, costs = st.integers(0, 3), st.none() | st.sampled_from([0.0, 0.25, 1.0])
    fields = {name: costs if name.endswith("_cost") else counts for name in Usage.model_fields}
    return st.builds(Usage, **fields)


@given(usages(), usages())
def test_a_sum_adds_each_number_and_leaves_unknown_only_what_neither_knows(one: Usage, other: Usage) -> None:
    added = one + other
    for name in Usage.model_fields:
        known = [value for value in (getattr(one, name), getattr(other, name)) if value is not None]
        assert getattr(added, name) == (sum(known) if known else None)
    assert added.model_dump_json(exclude_defaults=True) == Usage(**dict(added)).model_dump_json(exclude_defaults=True)
