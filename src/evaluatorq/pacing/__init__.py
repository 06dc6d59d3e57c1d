"""How often we may call: retries with backoff, adaptive concurrency per endpoint, budgets."""
