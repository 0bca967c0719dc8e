"""Findings of a node: when one opens, what explains it, and when it resolves."""
