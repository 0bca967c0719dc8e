"""Selected rows and columns are the same in memory, in parts of the buffer and in mapped files."""

from __future__ import annotations

import numpy as np
import pytest

from reveal_analyzer.tables.ingest.mmap_buffer import RowBuffer, compact

VALUES = np.random.default_rng(6).normal(size=(50, 7))
EVERY = np.arange(50)


def buffer(memory_bytes: int) -> RowBuffer:
    result = RowBuffer(7, memory_bytes)
    for first in range(0, 50, 15):
        result.append(VALUES[first : first + 15].copy())
    return result


@pytest.mark.parametrize("memory_bytes", [0, 2_000, 1 << 20])
@pytest.mark.parametrize("rows", [EVERY, EVERY[::-1], np.array([3, 4, 5]), np.array([9, 2])])
@pytest.mark.parametrize("columns", [np.arange(7), np.arange(1, 7), np.array([5, 0]), EVERY[:0]])
def test_a_selection_has_its_rows_and_columns(
    rows: np.ndarray, columns: np.ndarray, memory_bytes: int
) -> None:
    if memory_bytes == 0 and not len(columns):
        pytest.skip("no file is empty")
    found = buffer(memory_bytes).select(rows, columns)
    assert found.tolist() == VALUES[rows][:, columns].tolist()


def test_columns_in_order_take_no_second_memory() -> None:
    taken = buffer(1 << 20)
    assert np.shares_memory(taken.select(EVERY, EVERY[1:4]), taken.select(EVERY, EVERY[3:7]))


def test_all_arrays_together_stay_below_the_limit() -> None:
    taken = RowBuffer(7, 1_000)
    kinds = [type(taken.allocate((50, 1))) for _ in range(3)]
    assert kinds == [np.ndarray, np.ndarray, np.memmap]


@pytest.mark.parametrize(
    ("numbers", "expected"),
    [
        ([4], slice(4, 5)),
        ([2, 3, 4], slice(2, 5)),
        ([2, 4], None),
        ([3, 2], None),
        ([2, 2, 4], None),
    ],
)
def test_only_numbers_in_order_are_a_slice(numbers: list[int], expected: slice | None) -> None:
    given = np.array(numbers)
    found = compact(given)
    assert found == expected if expected else found is given
