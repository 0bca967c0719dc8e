"""Pods and other subjects: what a cgroup path says, and which pods run on this node."""
