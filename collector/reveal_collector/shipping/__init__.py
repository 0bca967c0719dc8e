"""Encoding of slices and their way to Redis or a recording."""
