"""What a process says of seconds in which the host gave no CPU: a virtual machine may stand still.

No test can prevent it, and none may take it for an error of what it tests.
"""

from __future__ import annotations

import re

_SKIPPED = re.compile(r"no sample for (\d+) s: the host or this process stood still")
_LOST = re.compile(r"^reveal: (\d+) slices lost before \S+\n", re.MULTILINE)


def skipped_seconds(log: str) -> int:
    """Return for how many seconds a collector has no slice, by its log."""
    return sum(map(int, _SKIPPED.findall(log)))


def without_lost_slices(warned: str) -> tuple[str, int]:
    """Return the warnings of a command without those of lost slices, and how many were lost."""
    return _LOST.sub("", warned), sum(map(int, _LOST.findall(warned)))
