"""A scenario as a test: one test for each case, the conversation as its fixture, the evidence in what it says.

    @pytest.mark.simulation(target="my_agent:answer", personas="personas", scenarios="scenarios")
    def test_support(simulated):
        simulated.assert_held()

The marker takes the options of ``simulate``; those of a class or module are the defaults of its tests. Without a model
being named everything is offline: simulated users and checks, no key, no network. An agent that is not importable comes
from a fixture called ``simulation_target``. Each test runs its own conversations and keeps no files, so that tests may
run in any order and in several processes.
"""

from __future__ import annotations

import asyncio
import re
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from evaluatorq.model.cases import SimulationDatapoint
    from evaluatorq.model.messages import Message
    from evaluatorq.model.results import SimulationResult

MARKER = "simulation"
FIXTURE = "simulated"
MODELS = ("sim_model", "judge_model", "llm_config", "offline")
_WIDTH = 100


class NotHeld(AssertionError):  # noqa: N818  what the conversation shows
    """Something that was decided is broken, or the agent broke the conversation off. The text shows where."""


class NotMeasured(AssertionError):  # noqa: N818  what the conversation shows
    """Nothing can be said of the agent: somebody else failed, or nobody could decide."""


@dataclass(frozen=True, slots=True)
class Simulated:
    """The conversations of one case: one for each sample."""

    datapoint: SimulationDatapoint
    results: tuple[SimulationResult, ...]

    @property
    def result(self) -> SimulationResult:
        """The conversation, or the first of its samples."""
        return self.results[0]

    @property
    def messages(self) -> list[Message]:
        """What was said in it."""
        return self.result.messages

    def assert_held(self) -> None:
        """Passes when everything that was decided held in every sample; what nobody could decide is let go.

        Raises ``NotHeld`` with the transcript and the words that show it, ``NotMeasured`` where nothing was decided.
        """
        __tracebackhide__ = True
        self._check(whole=False)

    def assert_passed(self) -> None:
        """Passes when everything was decided and held in every sample; ``NotMeasured`` where something was not."""
        __tracebackhide__ = True
        self._check(whole=True)

    def _check(self, *, whole: bool) -> None:
        __tracebackhide__ = True
        from evaluatorq.records.facts import conversation_facts  # noqa: PLC0415  this module is loaded with every pytest

        for number, result in enumerate(self.results):
            talk = conversation_facts(result)
            if talk.errored and talk.component == "target":
                raise NotHeld(self._told(number, "the agent failed"))
            if not talk.errored and talk.held is False:
                raise NotHeld(self._told(number, "broken"))
            if talk.errored or talk.held is None or (whole and talk.verdict != "passed"):
                raise NotMeasured(self._told(number, "could not be measured"))

    def _told(self, number: int, what: str) -> str:
        """Which conversation it is, what is wrong, and all of it with the verdicts beside the words."""
        from evaluatorq.reports.transcript import conversation_view, render_conversation  # noqa: PLC0415

        view = conversation_view(self.results[number], number)
        sample = f", sample {number} of {len(self.results)}" if len(self.results) > 1 else ""
        head = f"{view.line.persona} · {view.line.scenario}{sample}: {what}: {view.line.why}"
        return f"{head}\n\n{render_conversation(view, width=_WIDTH)}"


# ---------------------------------------------------------------- collecting


def pytest_configure(config: pytest.Config) -> None:
    """Registers the marker."""
    config.addinivalue_line(
        "markers", f"{MARKER}(**options): one test for each simulated case; options are those of simulate()"
    )


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Makes one test of each case."""
    if FIXTURE not in metafunc.fixturenames:
        return
    from evaluatorq.errors import EvaluatorqError  # noqa: PLC0415  only where it is used

    where = metafunc.definition.nodeid
    options: dict[str, object] = {}
    for marker in reversed(list(metafunc.definition.iter_markers(MARKER))):
        if marker.args:
            pytest.fail(f"{where}: the marker {MARKER} takes options by name only", pytrace=False)
        options.update(marker.kwargs)
    cases: tuple[SimulationDatapoint, ...] = ()
    refused = ""
    try:
        cases = _cases(options)
    except EvaluatorqError as error:
        refused = f"{where}: {error}"
    if refused:  # here and not above, where pytest would show both errors
        pytest.fail(refused, pytrace=False)
    metafunc.parametrize(
        FIXTURE, [(options, case) for case in cases], indirect=True, ids=[_name(case) for case in cases]
    )


def _cases(options: dict[str, object]) -> tuple[SimulationDatapoint, ...]:
    from evaluatorq.simulation.assemble import cases_of  # noqa: PLC0415
    from evaluatorq.simulation.config import SimulationConfig  # noqa: PLC0415

    config = SimulationConfig.parse(_options({**options, "target": options.get("target") or "demo", "samples": None}))
    return cases_of(config).datapoints


def _options(options: dict[str, object]) -> dict[str, object]:
    """The options with what a test needs: offline unless a model is named, no files, faults as results."""
    offline = {} if any(options.get(name) is not None for name in MODELS) else {"offline": True}
    kept = {"save": False, "raise_on_execution_failure": False, "executive_summary": False, "recommendations": False}
    return {**kept, **offline, **options}


def _name(case: SimulationDatapoint) -> str:
    text = f"{case.persona.name}-{case.scenario.name}"
    sample = "" if case.sample is None else f"-{case.sample}"
    return re.sub(r"[^\w-]+", "-", text).strip("-") + sample


# ---------------------------------------------------------------- running


@pytest.fixture
def simulation_target() -> object:
    """The agent under test where the marker names none; override it in your ``conftest.py``."""
    return None


@pytest.fixture
def simulated(request: pytest.FixtureRequest, simulation_target: object) -> Simulated:
    """The conversations of this test's case; see the marker ``simulation``."""
    options, case = request.param
    target = options.get("target") if options.get("target") is not None else simulation_target
    done = Simulated(case, tuple(_run({**options, "target": target if target is not None else "demo"}, case)))
    _note(request.node, done)
    return done


def _run(options: dict[str, object], case: SimulationDatapoint) -> list[SimulationResult]:
    """The conversations, in a loop of their own also where the test has one running."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return _simulated(options, case)
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(_simulated, options, case).result()


def _simulated(options: dict[str, object], case: SimulationDatapoint) -> list[SimulationResult]:
    from evaluatorq.simulation.api import simulate_sync  # noqa: PLC0415
    from evaluatorq.simulation.config import INPUTS  # noqa: PLC0415

    given = {name: value for name, value in _options(options).items() if name not in (*INPUTS, "only")}
    if given.get("offline"):
        given.setdefault("journal", False)  # nothing is paid for, so nothing can be lost
    return simulate_sync(**given, datapoints=[case])  # type: ignore[arg-type]  # a config refuses what is no option


def _note(node: pytest.Item, done: Simulated) -> None:
    """What happened, for reports: JUnit files show it beside the test."""
    from evaluatorq.records.verdicts import verdict_of  # noqa: PLC0415

    node.user_properties += [
        ("simulation.datapoint", done.datapoint.id),
        ("simulation.verdict", ", ".join(verdict_of(result) for result in done.results)),
        ("simulation.turns", str(sum(result.turn_count for result in done.results))),
    ]
