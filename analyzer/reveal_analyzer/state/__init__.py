"""What an analyzer learned about a node, as a value that outlives the process."""
