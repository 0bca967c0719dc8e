"""Entitlement: equal max-min shares of the CPUs."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reveal_analyzer.ledger.entitlement import entitled, shortfall

DESIRED = st.lists(st.floats(0, 64), max_size=20)


@pytest.mark.parametrize(
    ("desired", "cpus", "shares"),
    [
        ([1.0, 6.0], 2, [1.0, 1.0]),
        ([0.2, 6.0], 2, [0.2, 1.8]),
        ([0.5, 0.5], 2, [0.5, 0.5]),
        ([3.0, 0.1, 3.0], 4, [1.95, 0.1, 1.95]),
        ([], 2, []),
    ],
)
def test_what_a_subject_leaves_is_divided_among_the_others(
    desired: list[float], cpus: float, shares: list[float]
) -> None:
    assert entitled(np.array(desired), cpus).tolist() == pytest.approx(shares)


@given(DESIRED, st.integers(1, 64))
def test_shares_add_up_and_nobody_gets_more_than_it_wants(desired: list[float], cpus: int) -> None:
    shares = entitled(np.array(desired), cpus)
    assert (shares <= np.array(desired) + 1e-9).all()
    assert shares.sum() == pytest.approx(min(sum(desired), cpus))


def test_only_what_is_missing_of_the_share_is_a_shortfall() -> None:
    missing = shortfall(np.array([1.0, 1.0, 0.0]), np.array([0.4, 1.6, 0.0]))
    assert missing.tolist() == pytest.approx([0.6, 0.0, 0.0])
