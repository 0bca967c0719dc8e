"""Comparison of nodes with their peers: deviations of one node among many similar ones."""
