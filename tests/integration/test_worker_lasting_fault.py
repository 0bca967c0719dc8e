"""A fault that lasts, and an analyzer that does not: killed, replaced, joined, with other settings.

Whatever happens to analyzers, the fault has one finding and one report: opened once, resolved once
it is over.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from reveal_analyzer import worker as worker_module
from reveal_analyzer.node import OPTIONAL_STATE, NodeAnalyzer
from reveal_analyzer.sinks.kube import sink as sink_module
from reveal_analyzer.sinks.kube.sink import KubeSink
from reveal_analyzer.sinks.metrics import Metrics
from reveal_analyzer.stream.leases import rank
from reveal_analyzer.telemetry.snapshot import Snapshot
from reveal_analyzer.worker import Worker
from reveal_contract import names, wire
from reveal_contract.channels import ChannelTable
from reveal_contract.finding import FindingChange, FindingUpdate
from reveal_contract.settings import AnalyzerSettings
from reveal_contract.time_units import NS_PER_SECOND
from support.fake_kube import FakeKube
from support.redis_streams import QUICK, Stream
from support.synthetic_node import TABLE, Node

# a turn that replays minutes may take a second on a busy machine: it loses no lease by that
_TIMING = replace(QUICK, lease=2.5)
LEARNED, ONSET, END, LAST = 100, 110, 300, 345  # seconds of the node
SAVED_EACH = 60
START_NS = 1_700_000_000 * NS_PER_SECOND  # second 0 of the node
_BATCH = 20  # slices that are sent before the test waits for their analysis
SETTINGS = AnalyzerSettings(publish="kubernetes", node_conditions=True)
# pressure below the 80 % that prove a cause: only a baseline shows it
SCORED = {
    "cpu.pressure.some": 700_000.0, "cpu.context_switches": 3000.0, "cpu.user": 60.0,
    "cpu.procs_running": 9.0,
}  # fmt: skip
CERTAIN = {"cpu.pressure.some": 950_000.0, "cpu.procs_running": 30.0, "cpu.user": 190.0}
FAULTS = {"scored": SCORED, "certain": CERTAIN}
MOMENTS = {
    "before onset": ONSET - 5,
    "at onset": ONSET + 2,
    "just found": ONSET + 9,  # and not yet reported if its analyzer is killed
    "while open": ONSET + 85,
    "at the end": END + 4,
    "after the end": END + 25,
}


@dataclass
class Updates:
    """A sink: the changes of findings, with the second of the node in which they came."""

    now: Callable[[], int]
    rows: list[tuple[int, FindingUpdate]] = field(default_factory=list)

    def write(self, update: FindingUpdate) -> None:
        if update.change is not FindingChange.SUSPECTED:
            self.rows.append((self.now(), update))

    def forget(self, node: str, lost: str = "") -> None:
        pass

    def close(self) -> None:
        pass

    def of(self, change: FindingChange) -> list[int]:
        return [second for second, update in self.rows if update.change is change]


class RecordingKube(FakeKube):
    """The API of the profile "default"; ``states`` has the changes of reports, by second.

    ``severities`` are all that were written.
    """

    def __init__(self, now: Callable[[], int]) -> None:
        super().__init__()
        self._now = now
        self.profiles["default"] = {"metadata": {"uid": "uid", "generation": 1}, "spec": {}}
        self.states: list[tuple[int, str, str]] = []
        self.severities: set[str] = set()

    def apply_report_status(self, name: str, body: dict[str, Any]) -> dict[str, Any]:
        stored = super().apply_report_status(name, body)
        self.severities.add(body["status"]["severity"])
        state = name, str(body["status"]["state"])
        if state not in [(known, was) for _, known, was in self.states[-1:]]:
            self.states.append((self._now(), *state))
        return stored


class TurnedSink(KubeSink):
    """The Kubernetes sink without a thread: it does one round in each turn of its analyzer."""

    def _run(self) -> None:
        pass

    def observe(self, snapshot: Snapshot) -> None:
        super().observe(snapshot)
        self._round()

    def close(self) -> None:
        self._round()
        super().close()


@dataclass
class NodeTime:
    """Stands for the module ``time``: each second of the node is a second of its analyzers."""

    second: Callable[[], int]

    def monotonic(self) -> float:
        return float(self.second())

    def time_ns(self) -> int:
        return START_NS + self.second() * NS_PER_SECOND

    def time(self) -> float:
        return time.time()  # the age of a saved state is in the time of day


class FailingAnalysis(NodeAnalyzer):
    """An analysis that raises with its next slice once ``fails`` is set."""

    fails = False

    def analyze(
        self, message: wire.Message, table: ChannelTable, *, data: bytes = b"", silent: bool = False
    ) -> list[FindingUpdate]:
        if self.fails:
            raise ZeroDivisionError("a defect")
        return super().analyze(message, table, data=data, silent=silent)


class Cluster:
    """One node's stream, the analyzers that read it, and all that they report."""

    def __init__(self, stream: Stream) -> None:
        self._stream = stream
        self._node = Node()
        self._stream.announce(TABLE)
        self._gauges = wire.gauges(TABLE)
        self._workers: dict[str, Worker] = {}
        self._first_ms = 0
        self.name = self._node.slice().node
        self.present: Mapping[str, float] | None = None  # what differs from a quiet second
        self.updates = Updates(lambda: self._node.second)
        self.analysis: FailingAnalysis | None = None  # the last one that began
        self.api = RecordingKube(lambda: self._node.second)
        self.time = NodeTime(lambda: self._node.second)

    def start(self, owner: str, settings: AnalyzerSettings = SETTINGS) -> None:
        """Start an analyzer and wait until it may read."""
        reader = self._stream.reader(owner, timing=_TIMING)
        sink = TurnedSink(settings, self.api, owner)

        def analysis(node: str) -> FailingAnalysis:
            self.analysis = FailingAnalysis(node, settings)
            return self.analysis

        self._workers[owner] = Worker(
            reader, analysis, [self.updates, sink], Metrics(),
            observe=sink.observe, optional_state=OPTIONAL_STATE,
        )  # fmt: skip

    def date(self, second: int) -> None:
        """Let this second of the node be the present time of Redis."""
        self._first_ms = round(time.time() * 1000) - 1000 * second

    def kill(self, owner: str) -> None:
        del self._workers[owner]

    def close(self, owner: str) -> None:
        self._workers.pop(owner).close()

    def run_to(self, second: int, changed: Mapping[str, float] | None = None) -> None:
        """Send slices up to this second of the node, and wait until they are analyzed."""
        self.present = changed
        while self._node.second < second:
            message = self._node.slice(dict(changed or {}))
            data = wire.encode(message, self._gauges)
            fields = {names.FIELD_NODE: message.node, names.FIELD_DATA: data}
            self._stream.raw(message.node, fields, self._entry_id(message.sequence))
            if self._node.second % SAVED_EACH == 0:
                self._wait()
                self._save()
            elif self._node.second % _BATCH == 0:
                self._wait()
        self._wait()

    def _entry_id(self, second: int) -> str:
        """Return the id of a slice: whoever takes over reads the last minute of the stream."""
        return f"{self._first_ms + 1000 * second}-0"

    def wait_until_read_by(self, owner: str) -> None:
        self._turn_until(lambda: names.shard(self.name) in self._workers[owner]._reader.shards)

    def _wait(self) -> None:
        last = self._node.second - 1

        def is_analyzed() -> bool:
            nodes = [worker._nodes.get(self.name) for worker in self._workers.values()]
            positions = [node.position for node in nodes if node and node.position]
            return any(each.sequence == last for each in positions)

        self._turn_until(is_analyzed)

    def _save(self) -> None:
        for worker in self._workers.values():
            worker._save(list(worker._nodes.values()))

    def _turn_until(self, done: Callable[[], bool]) -> None:
        deadline = time.monotonic() + 45  # only ends a test that hangs
        while not done():
            assert time.monotonic() < deadline, (self._node.second, self.updates.rows)
            for worker in self._workers.values():
                worker.turn()


@pytest.fixture
def cluster(stream: Stream, monkeypatch: pytest.MonkeyPatch) -> Cluster:
    """A cluster on the time of its node, of which a minute passes within a second here."""
    built = Cluster(stream)
    monkeypatch.setattr(worker_module, "first_save_s", lambda node, now: now + 1e6)
    monkeypatch.setattr(worker_module, "_SNAPSHOT_SECONDS", 0.0)
    for module in (worker_module, sink_module):
        monkeypatch.setattr(module, "time", built.time)
    return built


def killed(cluster: Cluster) -> None:
    cluster.kill("one")
    cluster.start("two")


def closed(cluster: Cluster) -> None:
    cluster.close("one")
    cluster.start("two")


def patched(cluster: Cluster) -> None:
    """Another sensitivity: the operator replaces the analyzer."""
    cluster.close("one")
    cluster.start("two", replace(SETTINGS, sensitivity="Medium", min_severity="High"))


def raised(cluster: Cluster) -> None:
    """A minimum severity above that of the finding, whose report is open already."""
    cluster.close("one")
    cluster.start("two", replace(SETTINGS, min_severity="Critical"))


def scaled(cluster: Cluster) -> None:
    """A second analyzer gets the shard, and loses it again after it has ended."""
    heir = next(
        owner
        for owner in (f"heir-{number}" for number in range(50))
        if rank(names.shard(cluster.name), owner, ["one"]) == 0
    )
    cluster.start(heir)
    cluster.wait_until_read_by(heir)
    cluster.run_to(cluster._node.second + 3, cluster.present)
    cluster.close(heir)
    cluster.wait_until_read_by("one")


def failed(cluster: Cluster) -> None:
    """A defect that the next slice triggers: its analysis goes on from the saved state."""
    assert cluster.analysis is not None
    cluster.analysis.fails = True


CASES = [(moment, "scored") for moment in MOMENTS] + [("while open", "certain")]
RUNS = [(how, *case) for how in (killed, closed, patched, scaled) for case in CASES]
RUNS += [(how, "while open", "scored") for how in (raised, failed)]


@pytest.mark.parametrize(("how", "moment", "fault"), RUNS)
def test_a_fault_has_a_single_finding_and_report_whatever_happens_to_its_analyzer(
    cluster: Cluster, how: Callable[[Cluster], None], moment: str, fault: str
) -> None:
    cluster.start("one")
    happens = MOMENTS[moment]
    cluster.date(happens)
    for end, changed in ((ONSET, None), (END, FAULTS[fault]), (LAST, None)):
        if cluster._node.second <= happens < end:
            cluster.run_to(happens, changed)
            how(cluster)
        cluster.run_to(end, changed)
    updates = cluster.updates
    assert len({update.finding.id for _, update in updates.rows}) == 1, updates.rows
    (opened,), (resolved,) = updates.of(FindingChange.OPENED), updates.of(FindingChange.RESOLVED)
    assert ONSET < opened <= ONSET + 12
    assert END < resolved <= END + 30
    last = updates.rows[-1][1].finding
    first_s = (last.first_observed_ns - START_NS) // NS_PER_SECOND
    assert abs(first_s - ONSET) <= 5, "it begins with the fault, not with the analyzer"
    assert_has_a_single_report(cluster.api, f"default-n1-{last.id}")


def assert_has_a_single_report(api: RecordingKube, name: str) -> None:
    (_, *first), (resolved, *last) = api.states
    assert [first, last] == [[name, "Open"], [name, "Resolved"]]
    assert END < resolved <= LAST
    assert api.reports[name]["status"]["resolution"] == "Ended"
    # at another sensitivity the finding may be more severe
    reasons = [reason for reason in api.reasons() if reason != "AnomalyEscalated"]
    assert reasons == ["AnomalyDetected", "AnomalyResolved"]
    conditions = [str(patch.get("reason", "removed")) for _, patch in api.conditions]
    assert conditions == (["CPUHigh", "removed"] if "High" in api.severities else [])
