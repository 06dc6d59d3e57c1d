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
