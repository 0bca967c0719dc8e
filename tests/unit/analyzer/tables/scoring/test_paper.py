"""The paper's mode on tables against scikit-learn on the same features."""

import numpy as np
from sklearn.decomposition import PCA
from sklearn.ensemble import IsolationForest

from reveal_analyzer.features.numpy_impl import features
from reveal_analyzer.tables.scoring.api import SampleSettings, Table, score

SIZE, STRIDE = 10, 5


def _table(rows: int = 600) -> Table:
    values = np.random.default_rng(3).normal(size=(rows, 3))
    values[300:312] += 6.0
    times = np.arange(rows, dtype=np.int64) * 10**9
    return Table(times, ("a", "b", "c"), values)


def _windows(table: Table) -> np.ndarray:
    starts = range(0, len(table) - SIZE + 1, STRIDE)
    rows = [
        features(np.ascontiguousarray(table.values[begin : begin + SIZE])).ravel()
        for begin in starts
    ]
    windows = np.array(rows)
    center, spread = np.nanmean(windows, 0), np.nanstd(windows, 0)
    moved = spread > 1e-12 * np.abs(center)
    return np.nan_to_num((windows[:, moved] - center[moved]) / spread[moved])


def test_three_detectors_as_scikit_learn_has_them() -> None:
    table = _table()
    z = _windows(table)
    pca = PCA(0.95, svd_solver="full").fit(z)
    projected = pca.transform(z) / pca.singular_values_ * np.sqrt(len(z))
    forest = IsolationForest(random_state=0, max_samples=min(256, len(z))).fit(z.astype("f4"))
    scores = {
        "ZScore": np.abs(z).mean(1),
        "Mahalanobis": np.linalg.norm(projected, axis=1),
        "IsolationForest": -forest.score_samples(z.astype("f4")),
    }
    found = score(table, "paper", settings=SampleSettings(SIZE, STRIDE))
    assert list(found.methods) == list(scores)
    for name, each in scores.items():
        over = each / np.quantile(each, 0.99)
        # samples that one window alone covers
        assert np.allclose(found.methods[name][:STRIDE], over[0], rtol=1e-4), name
        assert np.allclose(found.methods[name].max(), over.max(), rtol=1e-4), name


def test_two_agreeing_detectors_mark_a_window_and_all_its_samples() -> None:
    found = score(_table(), "paper", settings=SampleSettings(SIZE, STRIDE))
    over = np.stack(list(found.methods.values())) > 1.0
    assert (found.anomalous <= (over.sum(0) >= 2)).all()
    marked = np.flatnonzero(found.anomalous)
    assert {300, 311} & set(marked.tolist())
    assert found.threshold == 2.0


def test_trained_on_a_baseline_its_percentile_is_the_baselines() -> None:
    table = _table()
    healthy = Table(table.times_ns[:250], table.names, table.values[:250])
    later = Table(table.times_ns[250:], table.names, table.values[250:])
    found = score(later, "paper", healthy, SampleSettings(SIZE, STRIDE))
    assert found.score[50:62].min() >= 2.0
    assert all(each[50:62].min() > 1.0 for name, each in found.methods.items() if name == "ZScore")


def test_a_column_that_stood_still_in_the_baseline_counts_once_it_moves() -> None:
    table = _table()
    errors = np.zeros((600, 1))
    errors[450:470] = 5.0
    whole = Table(table.times_ns, (*table.names, "errors"), np.hstack([table.values, errors]))
    healthy = Table(whole.times_ns[:250], whole.names, whole.values[:250])
    later = Table(whole.times_ns[350:], whole.names, whole.values[350:])
    settings = SampleSettings(SIZE, STRIDE)
    found = score(later, "paper", healthy, settings)
    without = score(
        Table(later.times_ns, table.names, later.values[:, :3]),
        "paper",
        Table(healthy.times_ns, table.names, healthy.values[:, :3]),
        settings,
    )
    assert found.score[100:120].min() >= 2.0
    assert without.score[100:120].max() < 2.0
    assert np.array_equal(found.score[:95], without.score[:95])
