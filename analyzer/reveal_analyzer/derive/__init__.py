"""Columns of a node: metrics derived from the raw channels of one second."""
