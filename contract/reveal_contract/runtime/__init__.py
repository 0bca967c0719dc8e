"""Run-time parts of all processes: HTTP endpoints, logs, liveness, memory, rate limits, backoff."""
