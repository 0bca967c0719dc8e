"""The paper's three detectors on window features, with held-out thresholds."""
