"""How often garbage is looked for while runs go on."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest

from evaluatorq.run.collector import PATIENT, patient_collector


@pytest.fixture(autouse=True)
def _threshold_of_python() -> Iterator[None]:
    before = gc.get_threshold()
    gc.set_threshold(700, 10, 10)
    yield
    gc.set_threshold(*before)


def test_it_is_patient_during_a_run_and_as_before_afterwards() -> None:
    with patient_collector():
        assert gc.get_threshold() == (PATIENT, 10, 10)
    assert gc.get_threshold() == (700, 10, 10)


def test_of_two_runs_that_overlap_the_last_one_puts_it_back() -> None:
    first, second = patient_collector(), patient_collector()
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    assert gc.get_threshold()[0] == PATIENT
    second.__exit__(None, None, None)
    assert gc.get_threshold() == (700, 10, 10)


@pytest.mark.parametrize("own", [0, PATIENT + 1])
def test_a_collector_that_is_off_or_more_patient_is_left_alone(own: int) -> None:
    gc.set_threshold(own, 10, 10)
    with patient_collector():
        assert gc.get_threshold()[0] == own
