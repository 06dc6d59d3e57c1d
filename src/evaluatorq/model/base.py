"""The two base classes of all records: lenient when read from a saved file, frozen in memory."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class Record(BaseModel):
    """A frozen record of ours. Unknown keys are ignored, so newer files load in older versions."""

    model_config = ConfigDict(frozen=True, extra="ignore", use_enum_values=False)


class Published(BaseModel):
    """A record whose shape users already know; mutable, because their code may set its fields."""

    model_config = ConfigDict(extra="ignore", validate_assignment=False, protected_namespaces=())


class Strict(BaseModel):
    """A frozen record that refuses unknown keys: what a person writes, or a file that must be exact."""

    model_config = ConfigDict(frozen=True, extra="forbid")
