"""Kubernetes: names, paths, transport, errors, Events and AnomalyReports of all components."""
