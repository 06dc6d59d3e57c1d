"""What a person says of a verdict: right or wrong, and why. Labels measure the judge; they never change a verdict."""

from __future__ import annotations

from typing import Literal

from pydantic import AwareDatetime

from evaluatorq.model.base import Record

LABEL_VERSION = 1
Source = Literal["judge", "check"]


class Label(Record):
    """One label on what the verdict ``said``. ``subject`` is ``verdict``, ``goal`` or a criterion's id.

    ``row`` counts conversations from 0. ``source`` is who decided, ``None`` where that is not known or was nobody.
    """

    label_version: int = LABEL_VERSION
    run_id: str | None = None
    row: int
    thread_id: str | None = None
    datapoint_id: str | None = None
    persona: str
    scenario: str
    subject: str
    rule: str
    said: str
    source: Source | None = None
    evidence: str = ""
    agrees: bool
    note: str = ""
    at: AwareDatetime

    @property
    def key(self) -> tuple[int, str]:
        """What is labelled; a later label on the same replaces the earlier one."""
        return self.row, self.subject
