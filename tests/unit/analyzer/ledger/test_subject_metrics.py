"""Metrics of lost time: which subjects have their own, and that together they miss nothing."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from prometheus_client import CollectorRegistry

from reveal_analyzer.derive.deriver import Deriver
from reveal_analyzer.ledger.accounts import AccountReader
from reveal_analyzer.ledger.lost_seconds import KEPT_SECONDS
from reveal_analyzer.ledger.subject_metrics import SubjectMetrics
from reveal_contract import ledger
from support.ledger_node import Times, ledger_node, ledger_values

JOB, HOG, SMALL, LATE = "/job", "/hog", "/small", "/late"
TIMES = {
    JOB: Times(run=0.5, cpu={HOG: 0.3, SMALL: 0.1}, others={ledger.THROTTLED: 0.1}),
    HOG: Times(run=1.5, threads=2),
    SMALL: Times(run=0.2, disk={HOG: 0.1}),
}


class Host:
    """Metrics of one node, fed with seconds."""

    def __init__(self, most: int, *subjects: str) -> None:
        self.metrics = SubjectMetrics(most)
        self.registry = CollectorRegistry()
        self.registry.register(self.metrics)
        self._reader, self._deriver = AccountReader(), Deriver()
        self.node = ledger_node(*subjects)

    def run(self, seconds: int, times: Mapping[str, Times]) -> None:
        for _ in range(seconds):
            message = self.node.slice(ledger_values(times))
            accounts = self._reader.read(self._deriver.second(message, self.node.table))
            assert accounts is not None
            self.metrics.add("n1", accounts)

    def subjects(self) -> set[str]:
        (family,) = [f for f in self.registry.collect() if "desired" in f.name]
        return {s.labels["subject"] for s in family.samples if s.name.endswith("_total")}

    def value(self, what: str, subject: str, **labels: str) -> float | None:
        name = f"reveal_subject_{what}_seconds_total"
        return self.registry.get_sample_value(name, {"node": "n1", "subject": subject, **labels})


def test_a_subject_has_what_it_desired_lost_and_took() -> None:
    host = Host(8, JOB, HOG, SMALL)
    host.run(40, TIMES)
    before = {s: host.value("desired", s) or 0.0 for s in (JOB, HOG)}
    lost = host.value("lost", JOB, reason="cpu") or 0.0
    host.run(10, TIMES)
    assert (host.value("desired", JOB) or 0) - before[JOB] == pytest.approx(10.0)
    assert (host.value("lost", JOB, reason="cpu") or 0) - lost == pytest.approx(4.0)
    assert host.value("lost", JOB, reason="quota") == pytest.approx(0.1 * before[JOB] + 1, abs=0.01)
    assert host.value("lost", HOG, reason="cpu") == 0
    taken = host.value("taken", HOG, resource="cpu") or 0.0
    assert taken == pytest.approx(0.3 * 50, abs=0.7)  # all but its first seconds
    assert host.value("taken", HOG, resource="storage") == pytest.approx(0.1 * 50, abs=0.3)


def test_only_the_busiest_have_series_of_their_own_beside_the_rest() -> None:
    host = Host(2, JOB, HOG, SMALL)
    host.run(50, TIMES)
    assert host.subjects() == {JOB, HOG, ledger.OTHER}
    desired = sum(host.value("desired", name) or 0.0 for name in host.subjects())
    assert desired == pytest.approx(50 * 2.8)
    assert (host.value("lost", ledger.OTHER, reason="storage") or 0) > 4.9


def test_a_subject_that_is_much_busier_displaces_the_idlest() -> None:
    host = Host(2, JOB, HOG, SMALL)
    host.run(50, TIMES)
    host.run(90, {**TIMES, JOB: Times(run=0.02), SMALL: Times(run=1.0)})
    assert host.subjects() == {SMALL, HOG, ledger.OTHER}


def test_similar_subjects_do_not_alternate() -> None:
    host = Host(1, JOB, HOG)
    host.run(30, {JOB: Times(run=0.6), HOG: Times(run=0.5)})
    host.run(60, {JOB: Times(run=0.5), HOG: Times(run=0.6)})
    assert host.subjects() == {JOB, ledger.OTHER}


def test_counters_never_fall_while_they_exist() -> None:
    host, last = Host(1, JOB, HOG), 0.0
    for _ in range(120):
        host.run(1, {JOB: Times(run=0.02), HOG: Times(run=1.0)})
        now = host.value("desired", ledger.OTHER) or 0.0
        assert now >= last
        last = now


def test_a_subject_that_is_gone_is_removed_after_its_last_scrapes() -> None:
    host = Host(8, JOB, HOG, SMALL)
    host.run(20, TIMES)
    counted = host.value("desired", JOB)
    host.node.table = ledger_node(HOG, SMALL, LATE).table
    host.run(KEPT_SECONDS, {HOG: TIMES[HOG], LATE: Times(run=0.9)})
    assert host.value("desired", JOB) == counted
    host.run(1, {HOG: TIMES[HOG], LATE: Times(run=0.9)})
    assert host.subjects() == {HOG, SMALL, LATE, ledger.OTHER}


def test_the_kernel_is_no_subject() -> None:
    host = Host(8, JOB, ledger.KERNEL)
    host.run(40, {JOB: Times(run=0.5), ledger.KERNEL: Times(run=1.0)})
    assert host.subjects() == {JOB, ledger.OTHER}
    assert (host.value("desired", ledger.OTHER) or 0.0) < 2.0


def test_a_node_that_leaves_has_no_series() -> None:
    host = Host(8, JOB)
    host.run(5, {JOB: Times(run=0.5)})
    host.metrics.forget("n2")
    assert host.subjects()
    host.metrics.forget("n1", "silent")
    assert host.subjects() == set()
