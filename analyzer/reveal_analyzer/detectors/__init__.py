"""The paper's three detectors on window features, with thresholds from validation scores."""
