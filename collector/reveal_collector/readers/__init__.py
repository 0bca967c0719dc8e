"""Readers of kernel files: which positions of a file hold which values."""
