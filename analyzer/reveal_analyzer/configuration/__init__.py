"""Rules on a node's facts that need no baseline: what is set up so that jobs must lose."""
