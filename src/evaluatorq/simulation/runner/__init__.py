"""Conversations without a run: ``SimulationRunner``, and jobs over the rows of a data set."""

from __future__ import annotations

from evaluatorq.simulation.runner.simulation import SimulationJob, SimulationRunner, wrap_simulation_agent
from evaluatorq.targets.published import AgentTarget

__all__ = ["AgentTarget", "SimulationJob", "SimulationRunner", "wrap_simulation_agent"]
