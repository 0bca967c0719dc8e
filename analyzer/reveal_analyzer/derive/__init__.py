"""Columns of a node: metrics derived from the raw channels of one second.

Counters arrive here as increments: resets and wraps are handled before, in the collector's
``shipping/counter_increments.py`` and ``native/counter_increments.c``.
"""
