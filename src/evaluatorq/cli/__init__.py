"""The ``evaluatorq`` and ``eq`` commands."""
