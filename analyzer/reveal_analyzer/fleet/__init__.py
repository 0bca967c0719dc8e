"""Nodes held against their peers: what one of many alike has, or suffers, and the others do not."""
