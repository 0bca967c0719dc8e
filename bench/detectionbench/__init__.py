"""The detection bench: labelled telemetry of machines, measures that no label helps, rivals."""
