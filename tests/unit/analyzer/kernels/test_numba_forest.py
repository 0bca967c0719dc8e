"""Compiled loops give scikit-learn's scores of forests, and numpy's z-scores to the last bit."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.typing import NDArray
from sklearn import ensemble

from reveal_analyzer.kernels import forest
from reveal_analyzer.kernels.forest import Forest, flatten, trivial
from reveal_analyzer.kernels.scaler import Scaler
from support.property_tests import examples

pytest.importorskip("numba")

from reveal_analyzer.kernels import numba_forest, numba_scaler


@pytest.mark.parametrize(("n", "width", "trees"), [(40, 300, 100), (600, 20, 37), (64, 5, 1)])
@pytest.mark.parametrize("part", [1.0, 0.4])
def test_scores_are_those_of_scikit_learn(n: int, width: int, trees: int, part: float) -> None:
    rng = np.random.default_rng(n)
    history = rng.normal(size=(n, width)).astype(np.float32)
    model = ensemble.IsolationForest(n_estimators=trees, max_features=part, random_state=1)
    flat = flatten(model.fit(history))
    for windows in (
        history,
        rng.normal(size=(7, width)).astype(np.float32) * 3,
        history[:1],
        history[:0],
    ):
        mine = numba_forest.scores(flat, windows)
        its = -model.score_samples(windows) if len(windows) else np.zeros(0)
        np.testing.assert_allclose(mine, its, atol=1e-7, rtol=0)
        np.testing.assert_allclose(mine, forest.scores(flat, windows), rtol=1e-12)


def test_a_window_exactly_on_a_threshold_goes_where_scikit_learn_sends_it() -> None:
    history = np.linspace(0, 1, 64, dtype=np.float32)[:, None] ** 3
    model = ensemble.IsolationForest(n_estimators=50, random_state=0).fit(history)
    thresholds = np.concatenate([each.tree_.threshold[each.tree_.feature >= 0]
                           for each in model.estimators_])  # fmt: skip
    windows = np.unique(thresholds.astype(np.float32))[:, None]
    mine = numba_forest.scores(flatten(model), windows)
    np.testing.assert_allclose(mine, -model.score_samples(windows), atol=1e-7, rtol=0)


def test_columns_in_any_memory_order_give_the_same() -> None:
    rng = np.random.default_rng(3)
    history = rng.normal(size=(50, 8)).astype(np.float32)
    flat = flatten(ensemble.IsolationForest(random_state=0).fit(history))
    turned = np.asfortranarray(history)
    np.testing.assert_array_equal(
        numba_forest.scores(flat, turned), numba_forest.scores(flat, history)
    )


def test_a_forest_without_a_split_scores_every_window_alike() -> None:
    windows = np.zeros((3, 0), np.float32)
    np.testing.assert_array_equal(numba_forest.scores(trivial(9), windows), [0.5, 0.5, 0.5])


@examples(50)
@given(st.integers(1, 12), st.integers(0, 4), st.integers(1, 6), st.integers(0, 2**32 - 1))
def test_trees_of_any_shape_end_where_numpy_ends(
    trees: int, levels: int, width: int, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    sizes = [trees << level for level in range(levels + 1)]
    thresholds = [
        rng.choice([-1.0, 0.0, 0.5, np.inf], size).astype(np.float32) for size in sizes[:-1]
    ]
    drawn = Forest(
        feature=[rng.integers(0, width, size) for size in sizes[:-1]],
        threshold=thresholds,
        depth=[rng.uniform(1, 9, size) for size in sizes],
        scale=float(trees * 4),
    )
    windows = rng.choice([-2.0, -1.0, 0.0, 0.5, 3.0], (9, width)).astype(np.float32)
    np.testing.assert_allclose(
        numba_forest.scores(drawn, windows), forest.scores(drawn, windows), rtol=1e-12
    )


@examples(100)
@given(
    hnp.arrays(
        np.float64,
        st.tuples(st.integers(2, 12), st.integers(1, 5)),
        elements=st.floats(allow_nan=True, allow_infinity=True),
    )
)
def test_z_scores_are_numpys_to_the_last_bit(windows: NDArray[np.float64]) -> None:
    scaler = Scaler().fit(windows)
    for given_rows in (windows, windows[::-1] / 1.5, windows[:0]):
        mine, its = numba_scaler.transform(scaler, given_rows), scaler.transform(given_rows)
        np.testing.assert_array_equal(mine, its)
        assert mine.dtype == its.dtype


def test_windows_of_another_layout_are_refused() -> None:
    scaler = Scaler().fit(np.eye(3))
    with pytest.raises(ValueError, match="3 features expected, not 2x4"):
        numba_scaler.transform(scaler, np.zeros((2, 4)))
