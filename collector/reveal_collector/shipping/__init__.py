"""Encoding of slices and delivery to Redis or to a recording."""
