"""The measures of the detection bench against published implementations and known values."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from sklearn.metrics import average_precision_score

from detectionbench.alarm_free_days import Watch, for_recall, operate
from detectionbench.command_line import Command
from detectionbench.dataset import DataError, machines
from detectionbench.detectors import DETECTORS, Reveal
from detectionbench.metrics import (
    alarms,
    auc_pr,
    found_within_budget,
    hit_rate,
    stretches,
    vus_pr,
)
from detectionbench.summary import measure, summarise
from support.property_tests import examples

DAY = 48  # half an hour is one sample, an hour two


def labelled(seed: int, rows: int, levels: int) -> tuple[NDArray[np.bool_], NDArray[np.float64]]:
    rng = np.random.default_rng(seed)
    label = np.zeros(rows, np.bool_)
    for row in rng.integers(0, rows, 3):
        label[row : row + int(rng.integers(1, 12))] = True
    return label, rng.integers(0, levels, rows) + 0.5 * label


class TestAucPr:
    @examples(60)
    @given(st.integers(0, 10**6), st.integers(20, 200), st.integers(1, 50))
    def test_is_scikit_learns(self, seed: int, rows: int, levels: int) -> None:
        label, score = labelled(seed, rows, levels)
        assert auc_pr(label, score) == pytest.approx(average_precision_score(label, score))


class TestVusPr:
    def test_a_perfect_score_has_the_maximum(self) -> None:
        label = np.zeros(300, np.bool_)
        label[50:60] = label[200:230] = True
        assert vus_pr(label, label.astype(float)) == pytest.approx(1.0)

    def test_a_constant_score_has_the_share_of_labels(self) -> None:
        # every sample is flagged at once: precision is the share of (faded) labels, all is met
        label = np.zeros(400, np.bool_)
        label[100:120] = True
        assert vus_pr(label, np.zeros(400), longest=0) == pytest.approx(0.05)
        faded = self.faded(label, 8).sum()
        both = [0.05 * 1.0] + [self.flat(label, buffer) for buffer in range(1, 9)]
        assert vus_pr(label, np.zeros(400), longest=8) == pytest.approx(np.mean(both))
        assert faded > 20

    def flat(self, label: NDArray[np.bool_], buffer: int) -> float:
        faded, hard = self.faded(label, buffer).sum(), label.sum()
        expected = (hard + hard + faded - hard) / 2
        return float(min(faded / expected, 1.0) * faded / len(label))

    @staticmethod
    def faded(label: NDArray[np.bool_], buffer: int) -> NDArray[np.float64]:
        soft = label.astype(float)
        for first, end in stretches(label):
            for off in range(1, buffer // 2 + 1):
                for index in (first - off, end - 1 + off):
                    if 0 <= index < len(label):
                        soft[index] += np.sqrt(1 - off / buffer)
        return np.minimum(soft, 1.0)

    @examples(25)
    @given(st.integers(0, 10**6), st.integers(60, 160))
    def test_equals_the_definition_for_each_threshold(self, seed: int, rows: int) -> None:
        label, _ = labelled(seed, rows, 2)
        score = np.random.default_rng(seed).normal(size=rows) + label
        areas = [self.area(label, score, buffer) for buffer in range(7)]
        assert vus_pr(label, score, longest=6) == pytest.approx(np.mean(areas))

    def area(self, label: NDArray[np.bool_], score: NDArray[np.float64], buffer: int) -> float:
        """Range AUC-PR with existence, read off the paper: one threshold after the other."""
        soft, half, before, total = self.faded(label, buffer), buffer // 2, 0.0, 0.0
        wide: list[tuple[int, int]] = []
        for first, end in stretches(label):
            begin = max(0, first - half)
            joined = wide.pop()[0] if wide and begin < wide[-1][1] else begin
            wide.append((joined, end + half))
        falling = np.sort(score)[::-1]
        for index in np.linspace(0, len(score) - 1, 250).astype(int):
            flags = score >= falling[index]
            met = np.mean([flags[first:end].any() for first, end in wide])
            truth = np.where(label, 1.0, soft * flags)
            found = float((soft * flags).sum())
            positives = (label.sum() + truth.sum()) / 2
            recall = min(found / positives, 1.0) * met
            total += (recall - before) * found / flags.sum()
            before = recall
        return total


class TestAlarms:
    def test_an_event_is_found_in_it_or_half_an_hour_after(self) -> None:
        label = np.zeros(40, np.bool_)
        label[5:8] = label[20:23] = label[30:33] = True
        flags = np.zeros(40, np.bool_)
        flags[[6, 23, 34]] = True
        result = alarms(label, flags, DAY)
        assert (result.events, result.found, result.delays, result.false) == (3, 2, (1, 3), 1)

    def test_adjacent_flags_join_and_long_alarms_count_each_hour(self) -> None:
        label = np.zeros(100, np.bool_)
        label[0] = True
        flags = np.zeros(100, np.bool_)
        flags[[10, 12, 50]] = True  # 12 is half an hour more than half an hour after 10
        assert alarms(label, flags, DAY).false == 3
        flags[11] = True
        assert alarms(label, flags, DAY).false == 3  # one alarm of three samples, an hour is two
        flags[60:80] = True
        assert alarms(label, flags, DAY).false == 13

    def test_the_time_near_events_is_not_quiet(self) -> None:
        label = np.zeros(97, np.bool_)
        label[50] = True
        assert alarms(label, np.zeros(97, np.bool_), DAY).quiet_days == pytest.approx(94 / 48)

    def test_a_budget_of_false_alarms_bounds_the_threshold(self) -> None:
        label = np.zeros(960, np.bool_)
        label[[100, 300, 500, 700]] = True
        score = np.random.default_rng(0).random(960)
        score[[100, 300]] = 9.0
        assert found_within_budget(label, score, DAY, budget=0.0) == 0.5
        assert found_within_budget(label, score, DAY, budget=1e9) >= 0.5


class TestQuiet:
    label = np.repeat([False, True, False, True], [100, 10, 100, 10])

    def watch(self) -> Watch:
        score = np.where(self.label, 5.0, 1.0)
        score[210:] = 2.0  # the second event hardly shows
        healthy = np.ones(4 * DAY)
        healthy[[10, 60, 100]] = 3.0  # two days of four
        return Watch(healthy, score + 1e-3 * np.arange(220), self.label, DAY)

    def test_days_with_an_alarm_are_not_quiet(self) -> None:
        result = operate([self.watch()], 2.5)
        assert (result.found, result.quiet) == (0.5, 0.25)

    def test_the_quietest_threshold_that_finds_enough(self) -> None:
        assert for_recall([self.watch()], 0.5).quiet == 1.0
        assert for_recall([self.watch()], 0.9).quiet == 0.25


def test_hit_rate_uses_the_first_ranked_metrics() -> None:
    truth = np.array([True, False, True, False, False])
    assert hit_rate([0, 1, 2, 3, 4], truth, 1.0) == 0.5
    assert hit_rate([0, 1, 2, 3, 4], truth, 1.5) == 1.0


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    rng = np.random.default_rng(0)
    values = np.cumsum(rng.normal(size=(1200, 6)), 0) * 0.05 + rng.normal(size=(1200, 6))
    label = np.zeros(600, np.uint8)
    label[200:230] = label[400:405] = 1
    values[600:][label > 0, 2:4] += 25.0
    arrays = {
        "train": values[:600].astype(np.float32),
        "test": values[600:].astype(np.float32),
        "label": label,
        "cause_span": np.array([[200, 229], [400, 404]], np.int32),
        "cause_dims": np.isin(np.arange(6), (2, 3))[None, :].repeat(2, 0),
        "metrics": np.array(list("abcdef")),
    }
    np.savez(tmp_path / "one.npz", **arrays)
    return tmp_path


class TestBench:
    def test_reads_machines(self, folder: Path) -> None:
        (machine,) = machines(folder, period_s=600)
        assert (machine.name, machine.day, len(machine.train)) == ("one", 144, 600)
        assert machine.test.times_ns[0] == 600 * 600 * 10**9
        assert [(cause.first, cause.end) for cause in machine.causes] == [(200, 230), (400, 405)]

    def test_refuses_invalid_data_with_the_reason(self, tmp_path: Path) -> None:
        with pytest.raises(DataError, match="say how many seconds"):
            list(machines(tmp_path))
        with pytest.raises(DataError, match=r"no \.npz"):
            list(machines(tmp_path, 60))
        np.savez(tmp_path / "x.npz", train=np.zeros(3))
        with pytest.raises(DataError, match="not labelled telemetry"):
            list(machines(tmp_path, 60))

    @pytest.mark.parametrize("name", DETECTORS)
    def test_every_detector_finds_an_obvious_anomaly(self, folder: Path, name: str) -> None:
        (machine,) = machines(folder, period_s=600)
        row = summarise([measure(machine, DETECTORS[name])])
        assert float(row["AUC-PR"]) > 0.18  # three times the share of labels
        assert row["top-1"] == 1.0 or not name.startswith(("reveal", "paper"))
        assert 0.0 <= float(row["quiet@50"]) <= 1.0

    def test_the_command_line_agrees_with_the_interface(self, folder: Path) -> None:
        (machine,) = machines(folder, period_s=600)
        spans = [(cause.first, cause.end) for cause in machine.causes]
        asked = machine.train, machine.test, spans
        ours, from_command = Reveal("report").judge(*asked), Command("report").judge(*asked)
        assert from_command.score == pytest.approx(ours.score, rel=1e-4)
        assert (from_command.flags == ours.flags).all() and ours.flags.any()
        assert from_command.rankings == ours.rankings
