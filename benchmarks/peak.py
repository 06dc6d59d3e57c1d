"""The most memory that a command ever holds, in MiB. Run: python benchmarks/peak.py COMMAND WORD...

The operating system counts from the fork on, so a child begins with the peak of whoever starts it. That is why it is
started from here: from a process of its own that has loaded nothing.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import IO


def peak_mib(
    command: list[str],
    *,
    env: dict[str, str] | None = None,
    cwd: Path | None = None,
    stdout: int | IO[bytes] | None = None,
) -> float:
    """Runs ``command`` to its end. ``SystemExit`` when it fails."""
    words = [sys.executable, "-S", __file__, *command]
    with subprocess.Popen(words, env=env, cwd=cwd, stdout=stdout, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        said = process.stderr.read()
    if process.returncode:
        raise SystemExit(f"{' '.join(command)} failed:\n{said}")
    return int(said.splitlines()[-1]) / 1024


def main() -> int:
    """Runs the command it is given; its peak in KiB is the last line on standard error."""
    pid = os.posix_spawnp(sys.argv[1], sys.argv[1:], os.environ)
    _, status, used = os.wait4(pid, 0)
    print(used.ru_maxrss, file=sys.stderr)
    return os.waitstatus_to_exitcode(status)


if __name__ == "__main__":
    sys.exit(main())
