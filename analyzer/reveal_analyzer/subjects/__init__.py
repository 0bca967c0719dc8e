"""Subjects of a node (pods, units, cgroups): their names and their shares over time."""
