"""``make soak MINUTES=30``: healthy jobs come and go on real nodes, and nothing is to be found.

What Reveal itself costs is taken down each minute, its memory may not grow.
"""
