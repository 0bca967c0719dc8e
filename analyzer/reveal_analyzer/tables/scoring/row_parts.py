"""Rows of a long table in parts: what is calculated from a part stays in the CPU's cache."""

from __future__ import annotations

from typing import NamedTuple

_CELLS = 1 << 18  # values of a part: 2 MiB


class RowPart(NamedTuple):
    """Some rows of a table; with ``around``, the same and some before and after them.

    ``inner`` are the rows within ``around``.
    """

    rows: slice
    around: slice
    inner: slice


def row_parts(count: int, width: int, halo: int) -> list[RowPart]:
    """Return the parts of ``count`` rows of ``width`` values, with ``halo`` more rows on each side.

    There are fewer at the ends of the table.
    """
    step = max(4 * halo, _CELLS // max(1, width))
    return [_part(first, min(first + step, count), count, halo) for first in range(0, count, step)]


def _part(first: int, end: int, count: int, halo: int) -> RowPart:
    begin = max(0, first - halo)
    return RowPart(
        slice(first, end), slice(begin, min(count, end + halo)), slice(first - begin, end - begin)
    )
