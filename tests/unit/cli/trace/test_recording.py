from __future__ import annotations

import itertools
import time
from pathlib import Path
from uuid import UUID

import pytest

from reveal_cli.errors import CliError
from reveal_cli.trace import recording as recording_module
from reveal_cli.trace.findings import JOBS
from reveal_cli.trace.recording import STEP_TIME, STEPS, boot_time_ns, read
from reveal_contract.recording import RecordingWriter
from reveal_contract.settings import AnalyzerSettings
from reveal_contract.wire import encode, gauges
from support.analyze_command import recording
from support.heartbeat_nodes import JOB, HeartbeatNode, Job
from support.perfetto_trace import DecodedTrace, decoded
from support.synthetic_node import BOOT

NS, START_NS = 1_000_000_000, 1_700_000_000 * 1_000_000_000
SETTINGS = AnalyzerSettings()


def traced(path: Path) -> DecodedTrace:
    return decoded(read(path, SETTINGS).timeline.packets(START_NS, 0))


@pytest.fixture(scope="module")
def faulty(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return recording(tmp_path_factory.mktemp("trace") / "r.rvl", 150, range(100, 115))


def test_a_recording_is_judged_and_its_findings_are_drawn(faulty: Path) -> None:
    trace = traced(faulty)
    [found] = trace.of("finding")
    assert found.path == ("n1", "Network")
    begin, end = ((ns - START_NS) / NS for ns in (found.begin, found.end))
    assert 98 <= begin <= 102
    assert 108 <= end <= 120


def test_the_metrics_behind_a_finding_have_a_value_each_second(faulty: Path) -> None:
    trace = traced(faulty)
    values = dict(trace.counters[("n1", "Network", "network.tcp.retrans_segs")])
    assert len(values) == 150
    assert values[START_NS + 50 * NS] == 0
    assert values[START_NS + 105 * NS] == pytest.approx(80, rel=0.2)
    assert trace.units[("n1", "Network", "network.tcp.retrans_segs")] == "events/s"


def test_findings_that_are_given_replace_the_judgement(faulty: Path) -> None:
    timeline = read(faulty, SETTINGS, []).timeline
    assert decoded(timeline.packets(START_NS, 0)).slices == []


def test_findings_of_another_time_are_left_out(faulty: Path, tmp_path: Path) -> None:
    short = recording(tmp_path / "short.rvl", 20)
    row = {"firstSeenTime": "2023-11-15T00:00:00Z", "lastSeenTime": "2023-11-15T00:00:09Z"}
    assert decoded(read(short, SETTINGS, [row]).timeline.packets(START_NS, 0)).slices == []


SECONDS = 150


@pytest.fixture(scope="module")
def working(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A recording of a job with steps of 0.8 s."""
    path = tmp_path_factory.mktemp("working") / "job.rvl"
    node = HeartbeatNode({JOB: Job(0.8, evaluates=0)}, SECONDS)
    with RecordingWriter(path) as writer:
        for message in node.slices():
            writer.message(encode(message, gauges(node.table)), node.table)
    return path


def test_steps_over_the_limit_are_not_drawn_and_the_step_time_is(
    working: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recording_module, "MOST_STEPS", 5)
    found = read(working, SETTINGS)
    trace = decoded(found.timeline.packets(START_NS, 0))
    assert len(trace.of("inferred")) == 5
    assert len(trace.counters[("n1", JOBS, JOB, STEP_TIME)]) > 50
    assert found.warnings == [
        f"only the first 5 steps of {JOB} are drawn; its step time is drawn on"
    ]


def test_an_incomplete_recording_is_drawn_with_a_warning(working: Path, tmp_path: Path) -> None:
    path = tmp_path / "incomplete.rvl"
    path.write_bytes(working.read_bytes()[:-100])
    assert read(path, SETTINGS).warnings == [f"{path} is incomplete; it is drawn up to its end"]


def test_steps_of_a_job_follow_each_other_and_are_as_long_as_it_takes(working: Path) -> None:
    trace = traced(working)
    steps = trace.of("inferred")
    assert {each.path for each in steps} == {("n1", JOBS, JOB, STEPS)}
    assert {each.name for each in steps} == {"step"}
    assert len(steps) > 50
    for step, following in itertools.pairwise(steps):
        assert step.end == following.begin
        assert step.end - step.begin == pytest.approx(0.8 * NS, rel=0.03)
    assert steps[-1].end <= START_NS + SECONDS * NS
    values = [value for _, value in trace.counters[("n1", JOBS, JOB, STEP_TIME)]]
    assert values[-1] == pytest.approx(800, rel=0.03)


def test_a_recording_without_slices_is_an_error(tmp_path: Path) -> None:
    RecordingWriter(tmp_path / "r.rvl").close()
    with pytest.raises(CliError, match="no slices"):
        read(tmp_path / "r.rvl", SETTINGS)


def test_the_boot_is_known_of_this_boot_only(tmp_path: Path) -> None:
    boot_id = tmp_path / "boot_id"
    clocks = {time.CLOCK_REALTIME: 500, time.CLOCK_BOOTTIME: 200}
    assert boot_time_ns(BOOT, boot_id, clocks.__getitem__) == 0
    boot_id.write_text(f"{UUID(bytes=BOOT)}\n")
    assert boot_time_ns(BOOT, boot_id, clocks.__getitem__) == 300
    assert boot_time_ns(b"c" * 16, boot_id, clocks.__getitem__) == 0
