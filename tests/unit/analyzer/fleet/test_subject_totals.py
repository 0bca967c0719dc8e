"""Sums over the seconds that were read, whichever values are missing in each."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from reveal_analyzer.fleet.subject_totals import ReadSums
from support.property_tests import examples

NAN = float("nan")
SECONDS = st.lists(
    st.lists(st.sampled_from([NAN, 0.0, 1.0, 2.5, 1e9]), min_size=3, max_size=3), max_size=12
)


@given(SECONDS, st.integers(0, 12))
@examples(100)
def test_means_are_those_of_what_was_read(seconds: list[list[float]], looks: int) -> None:
    sums = ReadSums(3)
    for number, values in enumerate(seconds):
        sums.add(np.array(values))
        if number == looks:
            sums.means()
    rows = np.array(seconds).reshape(-1, 3)
    read = np.isfinite(rows).sum(axis=0)
    summed, counted = sums.totals()
    np.testing.assert_allclose(summed, np.nansum(rows, axis=0))
    np.testing.assert_array_equal(counted, read)
    hardly = (read == 0) | (2 * read < len(rows))
    np.testing.assert_array_equal(np.isnan(sums.means()), hardly)
    np.testing.assert_allclose(
        sums.means()[~hardly], (np.nansum(rows, axis=0) / read.clip(1))[~hardly]
    )
