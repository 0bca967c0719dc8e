"""The Redis stream: leases on shards, slices of one second, channel tables."""
