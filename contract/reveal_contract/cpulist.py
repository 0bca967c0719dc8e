"""Sets of small numbers as the kernel writes them: ``0-3,8`` for CPUs, NUMA nodes, memory."""

from __future__ import annotations

from collections.abc import Iterable

MOST = 1 << 16  # no kernel has more CPUs


def parse(text: str) -> frozenset[int]:
    """Return the numbers of ``0-3,8``; empty for empty text, ``ValueError`` for anything else."""
    numbers: set[int] = set()
    for part in text.strip().split(","):
        if not part:
            continue
        first, dash, last = part.partition("-")
        low, high = int(first), int(last if dash else first)
        if not 0 <= low <= high < MOST:
            raise ValueError(f"{part!r} is not a range of CPUs")
        numbers.update(range(low, high + 1))
    return frozenset(numbers)


def render(numbers: Iterable[int]) -> str:
    """Return ``0-2,8`` for ``{0, 1, 2, 8}``."""
    spans: list[tuple[int, int]] = []
    for number in sorted(set(numbers)):
        if spans and spans[-1][1] == number - 1:
            spans[-1] = (spans[-1][0], number)
        else:
            spans.append((number, number))
    return ",".join(str(low) if low == high else f"{low}-{high}" for low, high in spans)
