"""What the processes share at run time: HTTP endpoints, logs, liveness, memory, rate limits."""
