"""Heartbeat: how long a job's steps take, read from the kernel's counters alone."""
