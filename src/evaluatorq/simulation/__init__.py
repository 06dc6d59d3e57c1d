"""The front door: ``simulate()`` and the names that the output reference uses."""
