"""New cases by a model: personas, scenarios, and seeded perturbations of what users write."""
