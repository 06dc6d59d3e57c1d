"""Saved, running and dead runs as pages for a browser on the same machine: ``evaluatorq view`` (extra ``web``)."""
