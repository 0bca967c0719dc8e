"""Subjects of a node: cgroups, pods and process groups, and their counters."""
