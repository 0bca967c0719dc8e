"""Offline mode: each second of a recording is judged against the whole recording."""
