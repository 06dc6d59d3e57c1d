"""How many conversations of a saved run came to which verdict, counted in its file where no manifest has told.

A copied, rescored or committed run has no manifest. Its results are read one at a time; a file larger than ``LARGEST``
is not read for a listing, which has to come at once.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import get_args

from evaluatorq.errors import ReplayError
from evaluatorq.records.verdicts import Verdict, verdict_of
from evaluatorq.store.runs import RunListing, iter_results

LARGEST = 32 << 20
"""In bytes; counting takes about a third of a second for as many."""


def counted(row: RunListing) -> RunListing:
    """The row with its verdicts; as it is where they are told, or the file cannot be read or is too large."""
    if row.verdicts or row.file is None or row.status != "completed":
        return row
    path = Path(row.file)
    try:
        if path.stat().st_size > LARGEST:
            return row
        verdicts: Counter[str] = Counter(map(verdict_of, iter_results(path)))
    except (ReplayError, OSError):
        return row
    return row.model_copy(update={"verdicts": {name: verdicts[name] for name in get_args(Verdict)}})
