"""``python -m evaluatorq``: the same as the ``evaluatorq`` command."""

import sys

from evaluatorq.cli import main

sys.exit(main())
