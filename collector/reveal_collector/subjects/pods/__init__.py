"""Pods and other tenants: what a cgroup path says, and who the pods of this node are."""
