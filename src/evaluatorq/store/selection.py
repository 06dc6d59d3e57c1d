"""Which conversations to have: the product of personas and scenarios, a selection by name, and repeats."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from difflib import get_close_matches

from evaluatorq.errors import CaseError, ConfigError
from evaluatorq.model.cases import Persona, Scenario, SimulationDatapoint
from evaluatorq.records.chosen import is_chosen
from evaluatorq.records.fingerprint import case_id


def product(personas: Sequence[Persona], scenarios: Sequence[Scenario]) -> list[SimulationDatapoint]:
    """Each persona with each scenario, persona by persona. The same case always has the same id.

    ``CaseError`` when two personas or two scenarios share a name, which tells their results apart.
    """
    _refuse_equal_names("personas", [persona.name for persona in personas])
    _refuse_equal_names("scenarios", [scenario.name for scenario in scenarios])
    pairs = [
        SimulationDatapoint(id="", persona=persona, scenario=scenario) for persona in personas for scenario in scenarios
    ]
    return [pair.model_copy(update={"id": case_id(pair)}) for pair in pairs]


def repeated(datapoints: Sequence[SimulationDatapoint], samples: int | None) -> list[SimulationDatapoint]:
    """Each datapoint ``samples`` times, one after the other, numbered from 0; ``None`` leaves repeats as they are.

    Repeats that are there already count as one datapoint. Datapoints that share an id without being numbered, as other
    writers allow, are numbered too: no two conversations of a run are the same one.
    """
    if samples is None:
        return list(_numbered(datapoints))
    once = [datapoint for datapoint in datapoints if not datapoint.sample]
    numbers = range(samples) if samples > 1 else (None,)
    return [datapoint.model_copy(update={"sample": number}) for datapoint in once for number in numbers]


def _numbered(datapoints: Sequence[SimulationDatapoint]) -> Iterator[SimulationDatapoint]:
    counts = Counter(datapoint.id for datapoint in datapoints)
    seen: Counter[str] = Counter()
    for datapoint in datapoints:
        if counts[datapoint.id] > 1 and datapoint.sample is None:
            yield datapoint.model_copy(update={"sample": seen[datapoint.id]})
            seen[datapoint.id] += 1
        else:
            yield datapoint


def select(datapoints: Sequence[SimulationDatapoint], pattern: str) -> list[SimulationDatapoint]:
    """Those whose id, persona or scenario matches: a part of the name, or a glob for all of it; letter case is free.

    ``ConfigError`` with near names when nothing matches.
    """
    wanted = pattern.strip().casefold()
    chosen = [datapoint for datapoint in datapoints if is_chosen(_names(datapoint), pattern)]
    if wanted and chosen:
        return chosen
    names = {name.casefold(): name for datapoint in datapoints for name in _names(datapoint)}
    near = [names[name] for name in get_close_matches(wanted, names, n=3, cutoff=0.4)]
    known = near or sorted({datapoint.scenario.name for datapoint in datapoints})[:5]
    raise ConfigError(
        f"no case matches {pattern!r}" + (f"; near it: {', '.join(known)}" if known else "; there are no cases")
    )


def _refuse_equal_names(what: str, names: Sequence[str]) -> None:
    first: dict[str, int] = {}
    for position, name in enumerate(names):
        if first.setdefault(name, position) != position:
            reason = f"{name!r} is also {what}[{first[name]}]; give each name once"
            raise CaseError(reason, field=f"{what}[{position}].name")


def _names(datapoint: SimulationDatapoint) -> tuple[str, str, str]:
    return datapoint.id, datapoint.persona.name, datapoint.scenario.name
