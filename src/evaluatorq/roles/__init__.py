"""Our own actors: simulated users and judges, with a model and without."""
