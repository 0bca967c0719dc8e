"""The Redis stream: leases on nodes, slices of one second, channel tables."""
