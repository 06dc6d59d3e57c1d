"""The key that pseudonyms are made with: a store's own, so that they are the same in all its runs and in no other.

It stands beside the runs and not in them: whoever gets a run file without the key cannot find out values by trying.
"""

from __future__ import annotations

import os
import secrets

from evaluatorq.errors import StoreError
from evaluatorq.store.atomic import create_file
from evaluatorq.store.paths import store_dir

KEY_VARIABLE = "EVALUATORQ_REDACTION_KEY"


def redaction_key() -> bytes:
    """The key of ``$EVALUATORQ_REDACTION_KEY``, or the store's, which is made when it is first needed."""
    given = os.environ.get(KEY_VARIABLE)
    if given:
        return given.encode()
    path = store_dir() / "redaction.key"
    try:
        if not path.exists():
            create_file(path, [secrets.token_hex(32).encode()])
        return path.read_bytes()
    except OSError as error:
        raise StoreError(f"cannot read {path}: {error.strerror}") from error
