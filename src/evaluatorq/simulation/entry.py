"""``simulate()``: what a program calls first. What it runs on is loaded when it is called, not when it is imported."""

from __future__ import annotations

from typing import TYPE_CHECKING, Unpack

if TYPE_CHECKING:
    from evaluatorq.simulation.api import SimulationResults
    from evaluatorq.simulation.keywords import SimulationOptions


async def simulate(**options: Unpack[SimulationOptions]) -> SimulationResults:
    """Lets simulated users talk to your agent and returns one ``SimulationResult`` for each datapoint, in order.

    The options are the fields of ``SimulationConfig``; the agent is ``target``, and the cases are ``datapoints``, or
    ``personas`` with ``scenarios``, or ``input``, or ``previous_run``. Works inside a running event loop.

    Raises ``ConfigError`` or ``CaseError`` before anything runs, and ``SimulationDroppedError`` after everything ran
    when a conversation ended in error or timeout (unless ``raise_on_execution_failure=False``); it carries all results,
    the run and its path. ``SimulationCancelledError`` when a hook declined; nothing was asked or paid for then.
    """
    from evaluatorq.simulation.api import check_outcome, concluded, run_simulation  # noqa: PLC0415
    from evaluatorq.simulation.config import SimulationConfig  # noqa: PLC0415
    from evaluatorq.simulation.elsewhere import warn_of_unstored  # noqa: PLC0415
    from evaluatorq.simulation.hook_stream import HookStream  # noqa: PLC0415

    config = SimulationConfig.parse(options)
    warn_of_unstored(config)
    hooks = HookStream(config.hooks, config.datapoint_parallelism)
    async with hooks.around():
        outcome = await run_simulation(config, sinks=[hooks], keep=True)
        check_outcome(config, outcome)
    return concluded(config, outcome)


def simulate_sync(**options: Unpack[SimulationOptions]) -> SimulationResults:
    """``simulate`` for scripts; inside a running event loop await ``simulate`` instead."""
    import anyio  # noqa: PLC0415

    async def run() -> SimulationResults:
        return await simulate(**options)

    return anyio.run(run)
