"""Offline mode: each second of a recording is judged against the whole recording.

Tables have an offline mode of their own: ``tables.scoring.offline``.
"""
