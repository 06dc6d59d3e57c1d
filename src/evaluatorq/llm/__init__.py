"""One way to call a model: OpenAI-compatible chat completions over httpx."""
