"""Programs that `collector.py` and `peers.py` measure, each alone in a process."""
