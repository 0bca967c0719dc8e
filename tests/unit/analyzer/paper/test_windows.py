import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from reveal_analyzer.arrays import Floats, Ints
from reveal_analyzer.paper.windows import (
    ChannelLayout,
    DecodedSlice,
    UndecodedSlice,
    WarmupSlices,
    WindowRing,
)
from reveal_contract import wire
from support.property_tests import examples


def layout(channels: int) -> ChannelLayout:
    return ChannelLayout(np.arange(channels), np.ones(channels))


def of(
    ticks: Ints, missing: NDArray[np.bool_] | None = None, given_layout: ChannelLayout | None = None
) -> DecodedSlice:
    none = np.zeros(ticks.shape, np.bool_)
    return DecodedSlice(
        ticks, none if missing is None else missing, given_layout or layout(ticks.shape[1])
    )


def sealed(plain: DecodedSlice) -> UndecodedSlice:
    """Return the slice in its wire format, with alternating counters and gauges."""
    gauges = np.arange(plain.ticks.shape[1]) % 2 > 0
    nothing = np.zeros(0, np.int64)
    message = wire.Message(
        "n", bytes(16), 1, 1, 1, bytes(8), plain.ticks, nothing, plain.missing, nothing > 0
    )
    return UndecodedSlice(wire.encode(message, gauges), gauges, plain.length, plain.layout)


def slices(count: int, channels: int = 3, ticks: int = 10) -> Ints:
    return np.arange(count * ticks * channels).reshape(count, ticks, channels)


def pushed(ring: WindowRing, item: DecodedSlice | UndecodedSlice) -> Floats | None:
    ring.push(item)
    return ring.window() if ring.complete else None


def test_a_window_is_the_last_three_slices_every_slice() -> None:
    ring, drawn = WindowRing(), slices(5)
    windows = [pushed(ring, of(ticks)) for ticks in drawn]
    assert windows[:2] == [None, None]
    for last in range(2, 5):
        np.testing.assert_array_equal(windows[last], drawn[last - 2 : last + 1].reshape(30, 3))
        assert (window := windows[last]) is not None
        assert window.flags.c_contiguous


def test_slices_taken_from_columns_still_make_contiguous_windows() -> None:
    ring, wide = WindowRing(2), slices(2, channels=6)
    ring.push(of(wide[0][:, ::2]))
    window = pushed(ring, of(np.asfortranarray(wide[1][:, ::2])))
    assert window is not None
    assert window.flags.c_contiguous
    np.testing.assert_array_equal(window, wide[:, :, ::2].reshape(20, 3))


def test_slices_kept_as_they_came_make_the_same_windows() -> None:
    ring, decoded, drawn = WindowRing(2), WindowRing(2), slices(4)
    for index, ticks in enumerate(drawn):
        plain = of(ticks, ticks % 7 == index)
        expected, found = pushed(decoded, plain), pushed(ring, sealed(plain))
        np.testing.assert_array_equal(found, expected)
    shorter = sealed(of(drawn[0][:5]))
    ring.push(shorter)
    assert not ring.complete


def test_no_window_spans_a_gap() -> None:
    ring, drawn = WindowRing(), slices(6)
    ring.push(of(drawn[0]))
    ring.push(of(drawn[1]))
    ring.reset()
    complete = [pushed(ring, of(ticks)) is not None for ticks in drawn[2:]]
    assert complete == [False, False, True, True]


def test_slices_of_another_length_restart_the_window() -> None:
    ring = WindowRing(2)
    ring.push(of(np.zeros((10, 3), np.int64)))
    assert pushed(ring, of(np.zeros((5, 3), np.int64))) is None
    window = pushed(ring, of(np.ones((5, 3), np.int64)))
    assert window is not None
    assert window.shape == (10, 3)


def test_channels_are_picked_and_scaled_and_those_gone_are_missing() -> None:
    picked = ChannelLayout(np.array([2, 3, 0]), np.array([0.5, 1.0, 10.0]))
    window = pushed(WindowRing(1), of(np.array([[1, 2, 3], [4, 5, 6]]), given_layout=picked))
    np.testing.assert_array_equal(window, [[1.5, np.nan, 10.0], [3.0, np.nan, 40.0]])


def test_missing_samples_stay_missing() -> None:
    window = pushed(WindowRing(1), of(np.array([[1, 7]]), np.array([[False, True]])))
    np.testing.assert_array_equal(window, [[1.0, np.nan]])


def test_a_window_of_no_slices_is_refused() -> None:
    with pytest.raises(ValueError, match="not 0"):
        WindowRing(0)


@examples(50)
@given(
    st.lists(st.one_of(st.none(), st.integers(0, 2**32 - 1)), min_size=1, max_size=12),
    st.integers(1, 3),
    st.booleans(),
)
def test_a_kept_warm_up_gives_the_very_windows_there_were(
    events: list[int | None], length: int, as_they_came: bool
) -> None:
    """A number is the seed of a slice, None is a gap."""
    ring, kept, observed = WindowRing(length), WarmupSlices(4, length), []
    for seed in events:
        if kept.complete:
            break
        if seed is None:
            ring.reset()
            kept.gap()
            continue
        rng = np.random.default_rng(seed)
        bounds = np.iinfo(np.int64)
        ticks = rng.integers(bounds.min, bounds.max, (2, 3), endpoint=True)
        plain = of(ticks, rng.random((2, 3)) < 0.1)
        window = pushed(ring, plain)
        kept.add(sealed(plain) if as_they_came else plain, window=window is not None)
        observed += [] if window is None else [window]
    again = list(kept.windows())
    assert kept.complete == (len(observed) >= 4)
    assert len(again) == len(observed)
    for window, before in zip(again, observed, strict=True):
        np.testing.assert_array_equal(window, before)


@pytest.mark.parametrize(("length", "stride"), [(3, 1), (3, 2), (4, 4), (1, 1)])
def test_windows_end_a_stride_apart(length: int, stride: int) -> None:
    ring, drawn = WindowRing(length, stride), slices(14)
    ends = [second for second, ticks in enumerate(drawn) if pushed(ring, of(ticks)) is not None]
    assert ends == list(range(length - 1, 14, stride))
    ring.reset()
    again = [second for second, ticks in enumerate(drawn) if pushed(ring, of(ticks)) is not None]
    assert again == ends


@pytest.mark.parametrize("every", [1, 2, 3, 7])
@pytest.mark.parametrize(("length", "stride"), [(3, 1), (3, 2), (1, 1), (4, 4)])
def test_of_a_long_warm_up_every_so_many_windows_are_kept(
    length: int, stride: int, every: int
) -> None:
    ring, kept, drawn = WindowRing(length, stride), WarmupSlices(5, length, every), slices(200)
    ended = []
    for ticks in drawn:
        if kept.complete:
            break
        window = pushed(ring, of(ticks))
        kept.add(of(ticks), window=window is not None)
        ended += [] if window is None else [window]
    again = list(kept.windows(stride))
    assert kept.complete
    np.testing.assert_array_equal(again, ended[::every])
