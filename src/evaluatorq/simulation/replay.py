"""The cases of a saved run, to be had again with another agent: only its datapoints and its turn limit are read.

What a run found is of no matter here, so that a run of any age, also one whose results cannot be read, gives its cases.
"""

from __future__ import annotations

import json
import warnings
from dataclasses import dataclass
from pathlib import Path

from pydantic import JsonValue, TypeAdapter, ValidationError

from evaluatorq.errors import ReplayError
from evaluatorq.model.cases import Persona, SimulationDatapoint
from evaluatorq.model.runs import REPLAY_VERSION
from evaluatorq.store.run_files import head_of, texts_of
from evaluatorq.store.runs import find_run

_DATAPOINTS: TypeAdapter[list[SimulationDatapoint]] = TypeAdapter(list[SimulationDatapoint])
_TRAITS = ("patience", "assertiveness", "politeness", "technical_level")


@dataclass(frozen=True, slots=True)
class SimulationReplay:
    """The cases of a run; ``max_turns`` is ``None`` where the run does not say. ``source`` is its id or file name."""

    datapoints: list[SimulationDatapoint]
    max_turns: int | None = None
    source: str | None = None


def load_simulation_replay(reference: str, runs_dir: Path | None = None) -> SimulationReplay:
    """The cases of the run that ``reference`` names: ``latest``, a path, a file name, a run id or a name.

    Raises ``ReplayError`` for a run that is not there, cannot be read, or was saved without its datapoints.
    """
    path = find_run(reference, runs_dir)
    run = _read(path)
    if "pipeline" in run:
        raise ReplayError(f"{path} is a red-team run, not a simulation run; its own command replays it")
    version = run.get("replay_version")
    if isinstance(version, int) and version > REPLAY_VERSION:
        raise ReplayError(f"{path} was saved by a newer version (replay_version {version}); upgrade evaluatorq")
    if not run.get("datapoints"):
        raise ReplayError(f"{path} cannot be replayed: it was saved without its datapoints, and results only name them")
    try:
        datapoints = _DATAPOINTS.validate_python(run["datapoints"])
    except ValidationError as error:
        fault = error.errors(include_url=False)[0]
        place = ".".join(str(part) for part in fault["loc"])
        raise ReplayError(f"{path} cannot be replayed: datapoints.{place}: {fault['msg']}") from error
    for persona in {datapoint.persona.name: datapoint.persona for datapoint in datapoints}.values():
        _warn_of_traits(persona, path)
    turns, run_id = run.get("max_turns"), run.get("run_id")
    return SimulationReplay(
        datapoints,
        turns if isinstance(turns, int) and not isinstance(turns, bool) and turns >= 1 else None,
        run_id if isinstance(run_id, str) else path.name,
    )


def _read(path: Path) -> dict[str, JsonValue]:
    """The file's own fields and its datapoints; results are skipped, which may be many."""
    try:
        value = head_of(path)
        if isinstance(value, dict) and value.get("datapoints") == []:
            value["datapoints"] = [json.loads(text) for text in texts_of(path, "datapoints")]
    except OSError as error:
        raise ReplayError(f"cannot read {path}: {error.strerror}") from error
    except ValueError as error:
        raise ReplayError(f"{path} is not JSON") from error
    if not isinstance(value, dict):
        raise ReplayError(f"{path} is not a simulation run: it holds no JSON object")
    if not value.keys() & {"datapoints", "results", "pipeline"}:
        raise ReplayError(f"{path} is not a simulation run: it has neither results nor datapoints")
    return value


def _warn_of_traits(persona: Persona, path: Path) -> None:
    """Traits beyond the scale are kept as they were, because the run was made with them."""
    beyond = [name for name in _TRAITS if not 0 <= getattr(persona, name) <= 1]
    if beyond:
        warnings.warn(
            f"{path}: persona {persona.name!r} has {', '.join(beyond)} outside 0..1", UserWarning, stacklevel=3
        )


__all__ = ["ReplayError", "SimulationReplay", "load_simulation_replay"]
