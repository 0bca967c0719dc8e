"""Jobs of several ranks that wait for each other: which rank delays the others."""
