"""The analyzer: slices of nodes in, findings out."""
