"""Each detector against scikit-learn or its plain definition."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from sklearn import ensemble
from sklearn.covariance import EmpiricalCovariance
from sklearn.decomposition import PCA

from reveal_analyzer.arrays import Floats
from reveal_analyzer.detectors.isolation_forest import IsolationForest
from reveal_analyzer.detectors.mahalanobis import Mahalanobis
from reveal_analyzer.detectors.still_features import StillFeatures
from reveal_analyzer.detectors.zscore import ZScore
from reveal_analyzer.kernels.forest import flatten
from reveal_analyzer.kernels.scaler import Scaler
from support.property_tests import examples

Make = type[ZScore] | type[Mahalanobis] | type[IsolationForest]

DETECTORS = [ZScore, Mahalanobis, IsolationForest]


def correlated(n: int, width: int, seed: int = 0) -> Floats:
    rng = np.random.default_rng(seed)
    common = rng.normal(size=(n, 5)) @ rng.normal(size=(5, width))
    return 100 * (common + 0.3 * rng.normal(size=(n, width))) + 1e6


def test_zscore_is_the_mean_absolute_z() -> None:
    history, new = correlated(80, 40), correlated(5, 40, seed=1)
    z = np.clip((new - history.mean(0)) / history.std(0), -8, 8)
    detector = ZScore().fit(history)
    np.testing.assert_allclose(detector.score(new), np.abs(z).mean(1), rtol=1e-6)


@pytest.mark.parametrize(("n", "width"), [(40, 120), (200, 30)])
@pytest.mark.parametrize(("single", "precision"), [(False, 1e-8), (True, 2e-3)])
def test_mahalanobis_is_that_of_scikit_learn_on_95_percent_of_variance(
    n: int, width: int, single: bool, precision: float
) -> None:
    history, new = correlated(n, width), correlated(25, width, seed=2)
    detector = Mahalanobis(single=single).fit(history)
    z_history, z_new = (detector.scaler_.transform(x).astype(float) for x in (history, new))
    pca = PCA(0.95, svd_solver="full").fit(z_history)
    covariance = EmpiricalCovariance().fit(pca.transform(z_history))
    expected = np.sqrt(covariance.mahalanobis(pca.transform(z_new)))
    assert detector.whitening_.shape[1] == pca.n_components_
    np.testing.assert_allclose(detector.score(new), expected, rtol=precision)


@pytest.mark.parametrize(
    ("n", "width", "max_samples"), [(40, 300, 256), (600, 20, 256), (64, 5, 50)]
)
def test_forest_scores_are_those_of_scikit_learn(n: int, width: int, max_samples: int) -> None:
    history, new = correlated(n, width), correlated(50, width, seed=3)
    detector = IsolationForest(max_samples=max_samples).fit(history)
    model = ensemble.IsolationForest(max_samples=min(n, max_samples), random_state=0)
    model.fit(detector.scaler_.transform(history))
    for windows in (history, new, new[:1]):
        expected = -model.score_samples(detector.scaler_.transform(windows))
        np.testing.assert_allclose(detector.score(windows), expected, atol=1e-7, rtol=0)


def test_forest_of_few_columns_a_tree_is_flattened_too() -> None:
    rng = np.random.default_rng(0)
    values = rng.normal(size=(120, 30)).astype(np.float32)
    model = ensemble.IsolationForest(n_estimators=20, max_features=0.3, random_state=4).fit(values)
    detector = IsolationForest()
    detector.forest_ = flatten(model)
    expected = -model.score_samples(values)
    np.testing.assert_allclose(detector.score_scaled(values), expected, atol=1e-7, rtol=0)


def test_contributions_sum_to_what_each_detector_scores() -> None:
    history, new = correlated(60, 25), correlated(9, 25, seed=5)
    z, mahalanobis = ZScore().fit(history), Mahalanobis(single=False).fit(history)
    forest = IsolationForest().fit(history)
    np.testing.assert_allclose(z.contributions(new).sum(1), z.score(new))
    np.testing.assert_allclose(
        mahalanobis.contributions(new).sum(1), mahalanobis.score(new) ** 2, rtol=1e-9
    )
    depth = -np.log2(forest.score(new)) * forest.forest_.scale
    expected = forest.forest_.depth[0].sum() - depth
    np.testing.assert_allclose(forest.contributions(new).sum(1), expected, atol=1e-9)


@pytest.mark.parametrize("make", DETECTORS)
def test_the_moved_feature_scores_higher_and_contributes_most(make: Make) -> None:
    rng = np.random.default_rng(6)
    history = rng.normal(size=(200, 12))
    detector = make().fit(history)
    normal, moved = np.zeros((2, 1, 12))
    moved[0, 7] = 7
    assert detector.score(moved)[0] > detector.score(normal)[0]
    assert detector.contributions(moved)[0].argmax() == 7


@pytest.mark.parametrize("make", DETECTORS)
def test_missing_values_count_as_the_mean_and_unknown_columns_are_left_out(make: Make) -> None:
    rng = np.random.default_rng(8)
    history = rng.normal(size=(50, 6))
    history[:, 2] = 0.1
    history[:, 4] = np.nan
    history[3, 5] = np.inf
    detector = make().fit(history)
    normal, missing = history[:1].copy(), history[:1].copy()
    normal[0, 0], missing[0, 0] = history[:, 0].mean(), np.nan
    missing[0, [2, 4]] = np.nan, 5.0
    np.testing.assert_allclose(detector.score(missing), detector.score(normal), rtol=1e-6)
    contributions = detector.contributions(missing)
    assert contributions.shape == (1, 6)
    assert (contributions[:, [2, 4]] == 0).all()


@pytest.mark.parametrize("make", DETECTORS)
def test_columns_that_stand_still_change_no_score(make: Make) -> None:
    """The paper's numbers are those of the features that varied."""
    history, new = correlated(60, 12), correlated(9, 12, seed=4)
    still = np.full((69, 4), [0.0, 0.1, -3e9, 1e-300])
    plain = make().fit(history)
    wide = make().fit(np.hstack([history, still[:60]]))
    np.testing.assert_array_equal(wide.score(np.hstack([new, still[60:]])), plain.score(new))


@pytest.mark.parametrize("make", DETECTORS)
def test_a_column_that_stood_still_counts_once_it_moves(make: Make) -> None:
    history = np.hstack([correlated(60, 12), np.zeros((60, 3))])
    detector = make().fit(history)
    normal = history[:1]
    moved, further = normal.copy(), normal.copy()
    moved[0, 12], further[0, 12:] = 500.0, -1.0
    [before], [single], [triple] = map(detector.score, (normal, moved, further))
    assert before < single < triple
    parts = detector.contributions(moved)[0]
    assert parts[12] > 0
    assert (parts[13:] == 0).all()


def test_the_parts_of_what_moved_sum_to_what_it_adds() -> None:
    history = np.hstack([correlated(60, 12), np.zeros((60, 3))])
    moved = history[:1].copy()
    moved[0, [12, 14]] = 5.0, -7.0
    z, forest = ZScore().fit(history), IsolationForest().fit(history)
    mahalanobis = Mahalanobis(single=False).fit(history)
    np.testing.assert_allclose(z.contributions(moved).sum(), z.score(moved)[0])
    np.testing.assert_allclose(
        mahalanobis.contributions(moved).sum(), mahalanobis.score(moved)[0] ** 2, rtol=1e-9
    )
    depth = -np.log2(forest.score(moved)[0]) * forest.forest_.scale
    root = forest.forest_.depth[0].sum()
    np.testing.assert_allclose(forest.contributions(moved).sum(), root - depth)


@pytest.mark.parametrize("make", DETECTORS)
def test_a_reference_without_variance_knows_only_that_something_moved(make: Make) -> None:
    detector = make().fit(np.full((40, 5), 0.3))
    scores = detector.score(np.random.default_rng(0).normal(size=(4, 5)))
    assert np.ptp(scores) == 0
    assert np.isfinite(scores).all()
    still = np.full((2, 5), 0.3)
    assert detector.contributions(still).tolist() == [[0.0] * 5] * 2
    assert (detector.score(still) <= scores[0]).all()


def test_a_change_counts_by_its_unit_and_not_below_rounding() -> None:
    scaler = Scaler().fit(np.full((5, 4), [0.0, 100.0, 100.0, 1.0]))
    still = StillFeatures.of(scaler, np.array([50.0, 15.0, 0.0, np.inf]))
    window = np.array([[100.0, 70.0, 100.0 + 1e-8, 9.0], [500.0, 100.0, 101.0, 1.0]])
    assert still.distances(window).tolist() == [[2.0, -2.0, 0.0, 0.0], [8.0, 0.0, 8.0, 0.0]]


@pytest.mark.parametrize("make", DETECTORS)
def test_no_windows_have_no_scores(make: Make) -> None:
    detector = make().fit(correlated(40, 8))
    assert detector.score(np.zeros((0, 8))).shape == (0,)
    assert detector.contributions(np.zeros((0, 8))).shape == (0, 8)


@pytest.mark.parametrize("make", DETECTORS)
def test_fitting_is_deterministic_and_replaces_earlier_fits(make: Make) -> None:
    history, other = correlated(60, 30), correlated(60, 30, seed=9)
    first = make().fit(history).score(other)
    again = make().fit(other).fit(history).score(other)
    np.testing.assert_array_equal(first, again)


@pytest.mark.parametrize("make", DETECTORS)
@pytest.mark.parametrize("windows", [np.zeros((0, 4)), np.zeros((1, 4)), np.zeros(4)])
def test_a_reference_of_less_than_two_windows_is_refused(make: Make, windows: Floats) -> None:
    with pytest.raises(ValueError, match="two or more windows"):
        make().fit(windows)


@pytest.mark.parametrize("make", DETECTORS)
def test_windows_of_another_layout_are_refused(make: Make) -> None:
    detector = make().fit(correlated(40, 8))
    with pytest.raises(ValueError, match="8 features expected, not 3x7"):
        detector.score(np.zeros((3, 7)))


def test_z_is_clipped() -> None:
    scaler = Scaler(clip=8.0).fit(np.random.default_rng(0).normal(size=(100, 3)))
    assert scaler.transform(np.array([[1e30, -1e30, 0.0]]))[0, :2].tolist() == [8.0, -8.0]


@examples(50)
@given(
    hnp.arrays(
        np.float64,
        st.tuples(st.integers(2, 12), st.integers(1, 5)),
        elements=st.floats(allow_nan=True, allow_infinity=True),
    )
)
def test_any_reference_gives_finite_z_scores_within_the_clip(windows: Floats) -> None:
    scaled = Scaler().fit(windows).transform(windows)
    assert np.isfinite(scaled).all()
    assert np.abs(scaled).max(initial=0) <= 8.0
