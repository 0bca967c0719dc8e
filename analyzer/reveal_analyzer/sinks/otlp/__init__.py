"""The OpenTelemetry sink: findings as log records and the health of nodes as a metric."""
