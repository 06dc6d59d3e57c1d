"""Spoiled messages: what each way does, and that chance is the caller's to fix."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluatorq.errors import ConfigError
from evaluatorq.generate.perturbation import (
    PerturbationType,
    apply_perturbation,
    apply_perturbations_batch,
    apply_random_perturbation,
)

MESSAGE = "Where is my order? It should have been here on Monday."
SEEDS = st.integers(0, 2**32)
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=200)


@given(TEXTS, st.sampled_from(PerturbationType), SEEDS)
def test_the_same_seed_gives_the_same_bytes(message: str, kind: PerturbationType, seed: int):
    once = apply_perturbation(message, kind, seed=seed)
    assert once.encode() == apply_perturbation(message, kind.value, seed=seed).encode()


@given(st.lists(TEXTS), st.floats(0, 1), SEEDS)
def test_a_batch_keeps_order_and_says_how_each_message_was_spoiled(messages: list[str], rate: float, seed: int):
    spoiled = apply_perturbations_batch(messages, rate, seed=seed)
    assert spoiled == apply_perturbations_batch(messages, rate, seed=seed)
    assert len(spoiled) == len(messages)
    assert all(after == before for before, (after, kind) in zip(messages, spoiled, strict=True) if kind is None)


def test_a_rate_of_zero_spoils_nothing_and_of_one_everything():
    assert apply_perturbations_batch([MESSAGE] * 20, 0, seed=1) == [(MESSAGE, None)] * 20
    assert all(kind is not None for _, kind in apply_perturbations_batch([MESSAGE] * 20, 1, seed=1))


def test_chance_picks_every_way():
    assert {apply_random_perturbation(MESSAGE, seed=seed)[1] for seed in range(60)} == set(PerturbationType)


@given(SEEDS, st.text("abc ", min_size=1, max_size=300))
def test_noise_adds_one_sign_for_each_twenty_and_keeps_the_letters(seed: int, message: str):
    noisy = apply_perturbation(message, PerturbationType.UNICODE_NOISE, seed=seed)
    assert len(noisy) == len(message) + max(1, len(message) // 20)
    assert "".join(letter for letter in noisy if letter in "abc ") == message


@given(SEEDS)
def test_a_cut_keeps_between_two_and_four_fifths(seed: int):
    cut = apply_perturbation(MESSAGE, PerturbationType.TRUNCATE, seed=seed)
    assert MESSAGE.startswith(cut)
    assert int(0.4 * len(MESSAGE)) <= len(cut) <= 0.8 * len(MESSAGE)


def test_a_short_message_is_not_cut():
    assert apply_perturbation("Hi there!!", PerturbationType.TRUNCATE, seed=1) == "Hi there!!"


@pytest.mark.parametrize("kind", ["markdown_injection", "code_injection", "mixed_language"])
def test_what_is_put_in_leaves_the_words_in_their_order(kind: str):
    for seed in range(20):
        spoiled = apply_perturbation(MESSAGE, kind, seed=seed)
        rest = iter(spoiled.split())
        assert all(word in rest for word in MESSAGE.split())
        assert len(spoiled) > len(MESSAGE)


def test_without_a_seed_it_varies():
    assert len({apply_perturbation(MESSAGE, "unicode_noise") for _ in range(20)}) > 1


def test_what_does_not_exist_is_refused_with_what_does():
    with pytest.raises(ConfigError, match=r"'typos'.*unicode_noise, truncate"):
        apply_perturbation(MESSAGE, "typos")
    with pytest.raises(ConfigError, match="share from 0 to 1, not 3"):
        apply_perturbations_batch([MESSAGE], 3)
