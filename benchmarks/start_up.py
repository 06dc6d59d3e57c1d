"""What it costs to start: CPU of fresh processes, from the first instruction to the exit."""

from __future__ import annotations

import os
import subprocess
import sys

COMMANDS = {
    "import pydantic": ["-c", "import pydantic"],
    "sim --help": ["-m", "evaluatorq", "sim", "--help"],
    "import": ["-c", "import evaluatorq.simulation"],
    "import simulate": ["-c", "from evaluatorq.simulation import simulate"],
}


def cpu_s(words: list[str]) -> float:
    """Seconds of CPU, user and system."""
    with subprocess.Popen([sys.executable, *words], stdout=subprocess.DEVNULL) as process:
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"python {' '.join(words)} failed")
    return used.ru_utime + used.ru_stime
