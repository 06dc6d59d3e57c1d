"""Prints the README's shell commands, one a line: those in blocks that begin with ```bash, without comments."""

import re
import sys
from pathlib import Path

text = Path(sys.argv[1]).read_text(encoding="utf-8")
for block in re.findall(r"^```bash\n(.*?)^```", text, flags=re.DOTALL | re.MULTILINE):
    for line in block.replace("\\\n", " ").splitlines():
        if line.strip() and not line.startswith("#"):
            sys.stdout.write(f"{line}\n")
