"""The collector's Prometheus endpoint."""
