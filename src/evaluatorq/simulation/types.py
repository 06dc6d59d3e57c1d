"""The older name of ``evaluatorq.simulation.contracts``."""

from __future__ import annotations

import warnings

from evaluatorq.simulation.contracts import *  # noqa: F403  the same names, whichever they are

warnings.warn(
    "evaluatorq.simulation.types is now called evaluatorq.simulation.contracts", DeprecationWarning, stacklevel=2
)
