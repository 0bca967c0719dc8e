"""The history of nodes: one value a second of each channel, kept for hours."""
