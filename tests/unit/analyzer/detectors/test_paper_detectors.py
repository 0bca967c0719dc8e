from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from reveal_analyzer.arrays import Floats
from reveal_analyzer.detectors.paper_detectors import METHODS, ModelError, PaperDetectors


def windows(n: int, seed: int, width: int = 60) -> Floats:
    """Return windows whose neighbors share two thirds of their noise, as overlapping windows do."""
    noise = np.random.default_rng(seed).normal(size=(n + 2, width))
    return noise[:-2] + noise[1:-1] + noise[2:]


@pytest.fixture(scope="module")
def fitted() -> PaperDetectors:
    return PaperDetectors().fit(windows(120, seed=0))


def test_few_healthy_windows_exceed_a_validated_threshold(fitted: PaperDetectors) -> None:
    judged = fitted.judge(windows(600, seed=1))
    over = np.array([[method.agrees for method in each.methods] for each in judged])
    assert over.mean(0).max() < 0.04
    assert np.mean([each.agreeing >= 2 for each in judged]) < 0.02


def test_in_sample_thresholds_would_mislead() -> None:
    """The reason for holding out: with few windows of many features each window that is fitted
    on has axes of its own and lies far out on them, so that no new one is ever farther."""
    history, new = windows(60, seed=3, width=400), windows(300, seed=4, width=400)
    detectors = PaperDetectors().fit(history)
    member = detectors.folds_[0]  # fitted without the first 20 windows and two next to them
    in_sample = np.quantile(member.scores(history[22:])[1], 0.99)
    loud = windows(1, seed=5, width=400) * 2
    assert member.scores(loud)[1, 0] < in_sample
    assert detectors.judge(loud)[0].methods[1].agrees
    assert np.mean([judged.methods[1].agrees for judged in detectors.judge(new)]) < 0.03


def test_all_three_agree_on_a_gross_change_and_name_its_columns(fitted: PaperDetectors) -> None:
    window = windows(1, seed=2)
    moved = set(range(5, 25))
    window[0, 5:25] = 13.0
    verdict = fitted.judge(window)[0]
    assert verdict.agreeing == 3
    for method in verdict.methods:
        assert method.score > method.threshold
        assert method.score_percent > 50
        assert {part.column for part in method.top[:4]} <= moved
        shares = [part.share for part in method.top]
        assert shares == sorted(shares, reverse=True)
        assert sum(shares) <= 1 + 1e-9


def test_no_detector_marks_a_normal_window(fitted: PaperDetectors) -> None:
    verdict = fitted.judge(np.zeros((1, 60)))[0]
    assert [method.name for method in verdict.methods] == list(METHODS)
    assert verdict.agreeing == 0
    assert all(method.top == () and method.score_percent < 50 for method in verdict.methods)


def test_judging_is_deterministic_and_independent_of_the_batch(fitted: PaperDetectors) -> None:
    new = windows(20, seed=6)
    again = PaperDetectors().fit(windows(120, seed=0))
    together = fitted.judge(new)
    assert again.judge(new) == together
    for index, judged in enumerate(together):
        alone = fitted.judge(new[index : index + 1])[0]
        for mine, its in zip(alone.methods, judged.methods, strict=True):
            assert mine.score == pytest.approx(its.score, rel=1e-5)


def test_no_windows_no_verdicts(fitted: PaperDetectors) -> None:
    assert fitted.judge(np.zeros((0, 60))) == []


def test_garbage_in_a_window_is_judged_not_raised(fitted: PaperDetectors) -> None:
    garbage = np.full((3, 60), np.nan)
    garbage[1], garbage[2] = np.inf, 1e300
    verdicts = fitted.judge(garbage)
    assert [each.agreeing for each in verdicts[:2]] == [0, 0]
    assert verdicts[2].agreeing >= 2


def test_a_reference_in_which_nothing_varies_marks_what_moves() -> None:
    detectors = PaperDetectors().fit(np.full((30, 8), 4.0))
    still, moved = np.full((2, 1, 8), 4.0)
    moved[0, 3] = 9.0
    assert detectors.judge(still)[0].agreeing == 0
    verdict = detectors.judge(moved)[0]
    assert verdict.agreeing == 2
    assert [part.column for part in verdict.methods[0].top] == [3]


def test_what_stood_still_counts_once_it_moves_and_changes_nothing_before() -> None:
    """Five errors a window, in features of which four fifths varied."""
    history, new = windows(120, seed=0), windows(20, seed=1)
    errors = np.zeros((120, 15))
    plain = PaperDetectors().fit(history)
    detectors = PaperDetectors().fit(np.hstack([history, errors]))
    unmoved = detectors.judge(np.hstack([new, errors[:20]]))
    for mine, its in zip(unmoved, plain.judge(new), strict=True):
        assert [m.score for m in mine.methods] == [m.score for m in its.methods]
        assert [m.threshold for m in mine.methods] == [m.threshold for m in its.methods]
    verdicts = detectors.judge(np.hstack([new, errors[:20] + 5.0]))
    assert all(verdict.agreeing == 3 for verdict in verdicts)
    assert {part.column for part in verdicts[0].methods[0].top[:15]} == set(range(60, 75))


def test_a_feature_that_varied_only_sometimes_does_not_raise_the_thresholds() -> None:
    """It stands still in some parts of the reference, not in the whole."""
    history = np.hstack([windows(120, seed=0), np.zeros((120, 15))])
    history[50:53, 60:] = 5.0
    plain = PaperDetectors().fit(history[:, :60])
    detectors = PaperDetectors().fit(history)
    for mine, its in zip(detectors.thresholds_, plain.thresholds_, strict=True):
        assert mine.value < 1.2 * its.value


def test_a_short_reference_is_refused() -> None:
    with pytest.raises(ValueError, match="30 windows or more, not 29"):
        PaperDetectors().fit(windows(29, seed=0))


def test_a_saved_model_judges_the_same(fitted: PaperDetectors, tmp_path: Path) -> None:
    path = tmp_path / "model.npz"
    fitted.save(path, "columns")
    loaded = PaperDetectors().load(path, "columns")
    assert loaded.judge(windows(9, seed=7)) == fitted.judge(windows(9, seed=7))
    assert [each.name for each in tmp_path.iterdir()] == ["model.npz"]


def test_a_model_of_other_columns_or_schema_is_refused(
    fitted: PaperDetectors, tmp_path: Path
) -> None:
    path = tmp_path / "model.npz"
    fitted.save(path, "columns")
    with pytest.raises(ModelError, match="other columns"):
        PaperDetectors().load(path)
    arrays = dict(np.load(path))
    arrays["schema"] = np.array(99)
    np.savez(path, **arrays)
    with pytest.raises(ModelError, match="schema"):
        PaperDetectors().load(path, "columns")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("1.kept", np.array([10_000])),
        ("0.mean", np.zeros(3)),
        ("thresholds", np.zeros((2, 2))),
        ("thresholds", np.zeros(3)),
        ("0.clip", np.array(["x"])),
        ("2.Mahalanobis.whitening", np.zeros((3, 3))),
        ("2.Mahalanobis.whitening", np.zeros(7)),
        ("1.IsolationForest.shape", np.array([100, 40])),
        ("1.IsolationForest.shape", np.array([7])),
        ("1.IsolationForest.cut", np.zeros(5, np.float32)),
        ("1.IsolationForest.feature", None),
        ("1.IsolationForest.feature", -70),
        ("1.IsolationForest.feature", 60),
        ("schema", None),
        ("members", np.array(0)),
        ("members", np.array(4)),
        ("baseline", np.zeros(2)),
        ("still.columns", np.array([60])),
        ("still.values", np.zeros(1)),
    ],
)
def test_a_garbled_model_is_refused_whole(
    fitted: PaperDetectors, tmp_path: Path, name: str, value: NDArray[np.generic] | int | None
) -> None:
    path = tmp_path / "model.npz"
    fitted.save(path)
    arrays = dict(np.load(path))
    if value is None:
        del arrays[name]
    else:
        arrays[name] = value if not isinstance(value, int) else np.full_like(arrays[name], value)
    np.savez(path, **arrays)
    other = PaperDetectors()
    with pytest.raises(ModelError, match=r"model\.npz"):
        other.load(path)
    assert not hasattr(other, "members_")


@pytest.mark.parametrize("data", [b"", b"PK\x03\x04 no archive", b"not an archive", bytes(500)])
def test_a_file_that_is_no_model_is_refused(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "model.npz"
    path.write_bytes(data)
    with pytest.raises(ModelError):
        PaperDetectors().load(path)
