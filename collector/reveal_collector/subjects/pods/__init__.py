"""Pods and other subjects: names of cgroups, pods of this node, owners of processes."""
