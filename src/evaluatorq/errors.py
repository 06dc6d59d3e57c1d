"""The exception tree, drawn once.

    EvaluatorqError
    ├── ConfigError (ValueError)      an option that cannot be right: exit code 2
    │   └── WrongKind (TypeError)     an object of a kind that cannot do the job
    ├── CaseError (ValueError)        a case file that cannot be right: file, line, field
    ├── ReplayError (RuntimeError)    a saved run that cannot be used
    │   ├── RunNotFound               with near matches
    │   └── ReplayDrift               what was replayed is not what was recorded
    ├── SchemaError (ValueError)      a file written by a newer version
    ├── StoreError (RuntimeError)     disk full, folder read-only, run locked by another process
    ├── ProtocolError (RuntimeError)  an event that does not fit: a fault of ours
    ├── CallError (RuntimeError)      one call to a participant failed
    ├── SimulationError (RuntimeError)
    │   ├── SimulationDroppedError    conversations ended in error; everything is saved first
    │   └── SimulationCancelledError  confirmation declined
    └── MissingLLMCredentialsError (ValueError)

Mistakes and broken files raise. What happens to a conversation is data: a participant's failure becomes a
``CallError``, the driver records it, and the run goes on.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from evaluatorq.model.results import SimulationResult
    from evaluatorq.model.runs import SimulationRun
    from evaluatorq.model.usage import Usage

Component = Literal["target", "user_simulator", "judge", "environment", "infrastructure"]
"""Who failed. Only ``target`` is ever held against the agent under test."""


class EvaluatorqError(Exception):
    """Everything this package raises on purpose."""


class ConfigError(EvaluatorqError, ValueError):
    """An option or a combination of options that cannot be right."""


class WrongKind(ConfigError, TypeError):  # noqa: N818  a description, as ConfigError's other messages are
    """An object that lacks what its place asks for: no agent, no judge, no hooks."""


class CaseError(EvaluatorqError, ValueError):
    """A case (persona, scenario, datapoint) that cannot be right, with the place and what would be."""

    def __init__(
        self, reason: str, *, file: str | None = None, line: int | None = None, field: str | None = None
    ) -> None:
        self.reason = reason
        self.file = file
        self.line = line
        self.field = field
        place = ":".join(str(part) for part in (file, line) if part is not None)
        super().__init__(": ".join(part for part in (place, field, reason) if part))


class ReplayError(EvaluatorqError, RuntimeError):
    """A saved run that cannot be read, replayed or resumed."""


class RunNotFound(ReplayError):  # noqa: N818  a state of the world, as FileNotFoundError is
    """No saved run answers to that reference; the message lists near matches."""


class ReplayDrift(ReplayError):  # noqa: N818  what happened
    """A replay came to something else than was recorded. ``drifts`` has each difference with its place."""

    def __init__(self, message: str, drifts: Sequence[object] = ()) -> None:
        super().__init__(message)
        self.drifts = tuple(drifts)


class SchemaError(EvaluatorqError, ValueError):
    """A file written by a newer version than this one reads."""


class StoreError(EvaluatorqError, RuntimeError):
    """The run store cannot be written: full disk, read-only folder, or a run held by another process."""


class ProtocolError(EvaluatorqError, RuntimeError):
    """An event that the conversation cannot accept in its present phase: a fault of the harness, never of an agent."""


class CallError(EvaluatorqError, RuntimeError):
    """One call to a participant failed.

    ``code`` is from the closed list in ``evaluatorq.model.events.FaultCode``. ``retryable`` says whether the same
    question may be asked again; ``reask`` that the answer came but was unusable, so asking again needs no waiting.
    ``usage`` is what the failed call cost, ``None`` when nobody knows; ``model`` is whose price that was.
    """

    def __init__(  # noqa: PLR0913  one fact each, keyword-only
        self,
        code: str,
        message: str,
        *,
        retryable: bool = False,
        reask: bool = False,
        retry_after: float | None = None,
        usage: Usage | None = None,
        component: Component | None = None,
        raw: str | None = None,
        model: str | None = None,
    ) -> None:
        super().__init__(message or code)
        self.code = code
        self.message = message or code
        self.retryable = retryable or reask
        self.reask = reask
        self.retry_after = retry_after
        self.usage = usage
        self.component: Component | None = component
        self.raw = raw
        self.model = model


class SimulationError(EvaluatorqError, RuntimeError):
    """A simulation could not be carried out."""


class SimulationCancelledError(SimulationError):
    """The confirmation hook said no."""


class SimulationDroppedError(SimulationError):
    """At least one conversation ended in error or timeout. The run was saved before this was raised."""

    def __init__(
        self,
        message: str,
        *,
        partial_results: list[SimulationResult],
        run: SimulationRun | None = None,
        path: Path | None = None,
    ) -> None:
        super().__init__(message)
        self.partial_results = partial_results
        self.run = run
        self.path = path


class MissingLLMCredentialsError(EvaluatorqError, ValueError):
    """A model is to be called and no credentials are set."""
