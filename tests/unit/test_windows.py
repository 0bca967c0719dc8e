import numpy as np
import pytest
from numpy.typing import NDArray

from reveal_analyzer.windows import WindowRing

Floats = NDArray[np.float64]


def slices(count: int, channels: int = 3, ticks: int = 10) -> Floats:
    values = np.arange(count * ticks * channels, dtype=float)
    return values.reshape(count, ticks, channels)


def test_a_window_is_the_last_three_slices_every_slice() -> None:
    ring, given = WindowRing(), slices(5)
    windows = [ring.push(values) for values in given]
    assert windows[:2] == [None, None]
    for last in range(2, 5):
        np.testing.assert_array_equal(windows[last], given[last - 2 : last + 1].reshape(30, 3))
        assert (window := windows[last]) is not None
        assert window.flags.c_contiguous


def test_slices_cut_from_columns_still_make_contiguous_windows() -> None:
    ring = WindowRing(2)
    wide = slices(2, channels=6)
    ring.push(wide[0][:, ::2])
    window = ring.push(np.asfortranarray(wide[1][:, ::2]))
    assert window is not None
    assert window.flags.c_contiguous
    np.testing.assert_array_equal(window, wide[:, :, ::2].reshape(20, 3))


def test_no_window_spans_a_gap() -> None:
    ring, given = WindowRing(), slices(6)
    ring.push(given[0])
    ring.push(given[1])
    ring.reset()
    assert [ring.push(values) is not None for values in given[2:]] == [False, False, True, True]


@pytest.mark.parametrize("other", [(10, 4), (5, 3)])
def test_another_layout_begins_anew(other: tuple[int, int]) -> None:
    ring = WindowRing(2)
    ring.push(np.zeros((10, 3)))
    assert ring.push(np.zeros(other)) is None
    window = ring.push(np.ones(other))
    assert window is not None
    assert window.shape == (2 * other[0], other[1])


def test_missing_samples_stay_missing() -> None:
    ring = WindowRing(1)
    window = ring.push(np.array([[1.0, np.nan]]))
    assert window is not None
    np.testing.assert_array_equal(np.isnan(window), [[False, True]])


def test_a_window_of_no_slices_is_refused() -> None:
    with pytest.raises(ValueError, match="not 0"):
        WindowRing(0)
