"""Configuration rules: settings of a node that cost jobs performance, found without a baseline."""
