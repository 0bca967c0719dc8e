"""A page: one HTML file without a network, that is complete without scripts."""
