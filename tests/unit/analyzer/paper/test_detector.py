from pathlib import Path

import numpy as np
import pytest

from reveal_analyzer.arrays import Floats
from reveal_analyzer.detectors.paper_detectors import MethodScore, ModelError
from reveal_analyzer.features.table import parse
from reveal_analyzer.paper.detector import (
    PaperDetector,
    PaperOptions,
    PaperVerdict,
)
from reveal_analyzer.paper.episodes import PaperEpisodes
from reveal_contract.metric import Kind, Role, Subsystem

CHANNELS = 24
NAMES = [f"net.rate{{{i}}}" if i < 12 else f"disk.rate{{{i}}}" for i in range(CHANNELS)]
SUBSYSTEMS = [Subsystem.NETWORK] * 12 + [Subsystem.STORAGE] * 12


def healthy(seconds: int, seed: int = 0, width: int = CHANNELS) -> list[Floats]:
    """Return overlapping windows of a steady signal with noise."""
    series = np.random.default_rng(seed).normal(100, 3, size=(seconds * 10 + 20, width))
    return [np.ascontiguousarray(series[index * 10 : index * 10 + 30]) for index in range(seconds)]


def learned(options: PaperOptions | None = None) -> PaperDetector:
    detector = PaperDetector(NAMES, SUBSYSTEMS, options=options)
    for window in healthy(60):
        detector.learn(window)
    return detector


@pytest.fixture(scope="module")
def detector() -> PaperDetector:
    return learned()


def burst(channels: list[int], seed: int = 9) -> Floats:
    window = healthy(1, seed)[0]
    window[:, channels] += 40 * np.random.default_rng(seed).normal(size=(30, len(channels)))
    return window


def test_there_is_no_verdict_during_the_warm_up() -> None:
    detector = PaperDetector(NAMES, SUBSYSTEMS, options=PaperOptions(warmup_windows=30))
    for window in healthy(29):
        detector.learn(window)
    assert not detector.ready
    assert detector.judge(burst([3])) is None
    detector.learn(healthy(30)[-1])
    assert detector.ready
    assert detector.judge(burst([3])) is not None


def test_a_burst_is_marked_with_its_metrics_feature_and_subsystem(detector: PaperDetector) -> None:
    verdict = detector.judge(burst([14, 15, 16]))
    assert verdict is not None
    assert verdict.marked
    assert verdict.agreeing >= 2
    assert verdict.subsystem is Subsystem.STORAGE
    assert {pair.channel for pair in verdict.pairs[:3]} <= {NAMES[i] for i in (14, 15, 16)}
    best = verdict.pairs[0]
    assert parse(best.name).channel == best.channel
    assert best.direction == ("up" if best.value > best.baseline else "down")
    assert best.claim.startswith(f"{best.channel} shows ")
    assert "relative to baseline" in verdict.claim


def test_the_claim_speaks_as_the_papers_table_does() -> None:
    titles = [f"Disk read rate {i}" for i in range(CHANNELS)]
    detector = PaperDetector(NAMES, SUBSYSTEMS, titles=titles)
    for window in healthy(60):
        detector.learn(window)
    verdict = detector.judge(burst([14]))
    assert verdict is not None
    claims = {pair.feature: pair.claim for pair in verdict.pairs}
    assert claims["variance"].startswith(
        "Disk read rate 14 shows higher within-window variance relative to baseline ("
    )


def test_co_occurring_subsystems_are_named_together(detector: PaperDetector) -> None:
    verdict = detector.judge(burst([2, 14]))
    assert verdict is not None
    assert set(verdict.subsystems) == {Subsystem.NETWORK, Subsystem.STORAGE}


def test_most_healthy_windows_are_not_marked(detector: PaperDetector) -> None:
    verdicts = [detector.judge(window) for window in healthy(200, seed=4)]
    assert np.mean([verdict is not None and verdict.marked for verdict in verdicts]) < 0.05


def test_methods_are_those_of_a_finding(detector: PaperDetector) -> None:
    verdict = detector.judge(burst([1]))
    assert verdict is not None
    methods = verdict.as_methods()
    assert [method.name for method in methods] == ["ZScore", "Mahalanobis", "IsolationForest"]
    assert all(method.agrees == (method.score_percent > 50) for method in methods)


def test_the_same_windows_give_the_same_verdict(detector: PaperDetector) -> None:
    window = burst([5])
    assert learned().judge(window) == detector.judge(window)


def test_a_channel_that_loses_its_samples_does_not_mark_the_window(detector: PaperDetector) -> None:
    window = healthy(1, seed=11)[0]
    before = detector.judge(window.copy())
    window[7, 3] = np.nan
    window[:, 4] = np.nan
    after = detector.judge(window)
    assert before is not None
    assert after is not None
    assert after.methods[0].score <= before.methods[0].score + 1e-6


def test_event_counters_are_summed_and_static_channels_left_out() -> None:
    roles = [Role.EVENT, Role.STATIC, Role.DYNAMIC]
    names, subsystems = ["net.drops", "mem.total", "net.rate"], [Subsystem.NETWORK] * 3
    detector = PaperDetector(names, subsystems, roles=roles, kinds=[Kind.COUNTER] * 3)
    for index, window in enumerate(healthy(60, width=3)):
        window[:, 0], window[:, 1] = index % 2, 7.0
        detector.learn(window)
    window = healthy(1, seed=3, width=3)[0]
    window[:, 0], window[:, 1] = 90.0, 1e9
    window[:, 2] += 500
    verdict = detector.judge(window)
    assert verdict is not None
    marked = {pair.name for pair in verdict.pairs}
    assert "net.drops__sum_values" in marked
    assert not any(name.startswith("mem.total") for name in marked)
    assert {name for name in marked if name.startswith("net.drops")} == {"net.drops__sum_values"}


def test_static_channels_are_ignored() -> None:
    roles = [Role.DYNAMIC] * 12 + [Role.STATIC] * 12
    detector = PaperDetector(NAMES, SUBSYSTEMS, roles=roles)
    for window in healthy(60):
        detector.learn(window)
    window = healthy(1, seed=3)[0]
    plain = detector.judge(window)
    window = window.copy()
    window[:, 12:] *= 50
    assert detector.judge(window) == plain


def test_a_refit_makes_a_lasting_change_the_new_normal() -> None:
    options = PaperOptions(warmup_windows=40, refit_windows=40, reservoir=60)
    detector = PaperDetector(NAMES, SUBSYSTEMS, options=options)
    shifted = [window * 3 for window in healthy(200, seed=8)]
    for window in healthy(40):
        detector.learn(window)
    first = detector.judge(shifted[0])
    for window in shifted:
        detector.learn(window)
    later = [detector.judge(window * 3) for window in healthy(30, seed=12)]
    assert first is not None
    assert first.marked
    assert np.mean([verdict is not None and verdict.marked for verdict in later]) < 0.2


def test_a_saved_reference_is_used_by_another_with_the_same_channels(
    detector: PaperDetector, tmp_path: Path
) -> None:
    path = tmp_path / "reference.npz"
    detector.save(path)
    other = PaperDetector(NAMES, SUBSYSTEMS)
    other.load(path)
    assert other.judge(burst([2])) == detector.judge(burst([2]))
    renamed = PaperDetector([*NAMES[1:], "cpu.busy"], SUBSYSTEMS)
    with pytest.raises(ModelError, match="other columns"):
        renamed.load(path)
    assert not renamed.ready


def test_wrong_use_is_refused_with_a_sentence(detector: PaperDetector, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="24 channels expected"):
        detector.judge(np.zeros((30, 3)))
    with pytest.raises(ValueError, match="1 subsystems"):
        PaperDetector(NAMES, [Subsystem.CPU])
    with pytest.raises(ValueError, match="warm-up takes 30"):
        PaperOptions(warmup_windows=10)
    with pytest.raises(ValueError, match="nothing to save"):
        PaperDetector(NAMES, SUBSYSTEMS).save(tmp_path / "none.npz")


def verdict_of(agreeing: int, percent: int = 60) -> PaperVerdict:
    methods = tuple(
        MethodScore(name, 1.0, 0.5, index < agreeing, percent) for index, name in enumerate("ABC")
    )
    return PaperVerdict(methods, agreeing >= 2)


def test_adjacent_marked_windows_form_an_episode_with_the_strongest_verdict() -> None:
    episodes, marks, strongest = PaperEpisodes(), [0, 2, 3, 2, 1, 2], verdict_of(3)
    ended = []
    for second, agreeing in enumerate(marks):
        verdict = strongest if agreeing == 3 else verdict_of(agreeing)
        if (episode := episodes.push(second, second + 3, verdict)) is not None:
            ended.append(episode)
    assert [(e.first_ns, e.last_ns, e.windows) for e in ended] == [(1, 6, 3)]
    assert ended[0].peak is strongest
    assert episodes.current is not None
    last = episodes.close()
    assert last is not None
    assert (last.first_ns, last.last_ns, last.windows) == (5, 8, 1)
    assert episodes.close() is None


def test_a_gap_ends_an_episode() -> None:
    episodes = PaperEpisodes()
    assert episodes.push(0, 3, verdict_of(2)) is None
    ended = episodes.push(10, 13, verdict_of(2))
    assert ended is not None
    assert ended.last_ns == 3
    assert episodes.push(11, 14, None) is not None
    assert episodes.current is None
