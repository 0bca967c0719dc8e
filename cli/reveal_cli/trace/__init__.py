"""Recordings as traces for the viewer of Perfetto."""
