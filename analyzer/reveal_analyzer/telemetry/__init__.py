"""State of the monitoring itself: reporting nodes, nodes in warm-up, collectors that lose data."""
