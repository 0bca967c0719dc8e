"""Detection on tables of any period: minute-scale telemetry and foreign data."""
