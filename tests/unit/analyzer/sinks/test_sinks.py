"""Sinks: rows on disk despite disk errors, and metrics as a scraper parses them."""

from __future__ import annotations

import json
import os
import socket
import urllib.request
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from reveal_analyzer.sinks.jsonl import JsonlSink
from reveal_analyzer.sinks.metrics import Metrics
from reveal_contract.finding import Finding, FindingChange, FindingUpdate, Severity, State
from reveal_contract.metric import Subsystem


def update(change: str = "Opened", identity: str = "a", **other: Any) -> FindingUpdate:
    given: dict[str, Any] = {
        "node_name": "n1", "subsystem": Subsystem.CPU, "severity": Severity.HIGH,
        "state": State.RESOLVED if change == "Resolved" else State.OPEN,
        "first_observed_ns": 1, "last_observed_ns": 2, "claim": "täglich", **other,
    }  # fmt: skip
    return FindingUpdate(FindingChange(change), Finding(id=identity, **given))


def rows(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_each_change_is_written_immediately_as_a_row(tmp_path: Path) -> None:
    sink = JsonlSink(tmp_path / "f.jsonl")
    for change in ("Suspected", "Opened", "Changed", "Resolved"):
        sink.write(update(change))
    assert [row["state"] for row in rows(sink.path)] == ["Open", "Open", "Resolved"]
    assert rows(sink.path)[0] == update().finding.to_dict()
    sink.close()
    sink.close()


def test_a_lost_finding_gets_a_last_row_and_a_handed_over_finding_gets_none(
    tmp_path: Path,
) -> None:
    sink = JsonlSink(tmp_path / "f.jsonl")
    for identity, node in (("a", "n1"), ("b", "n1"), ("c", "n2"), ("d", "n3")):
        sink.write(update(identity=identity, node_name=node))
    sink.write(update("Resolved", "b", resolved_ns=3))
    sink.forget("n1", "its analysis failed")
    sink.forget("n1", "its analysis failed")
    sink.forget("n3")
    *_, last = rows(sink.path)
    assert len(rows(sink.path)) == 6
    assert (last["id"], last["state"], last["resolution"]) == ("a", "Resolved", "Unobserved")
    assert last["notes"] == ["its analysis failed"]
    assert last["resolvedTime"] >= last["lastSeenTime"]
    sink.close()


def test_rows_are_appended_after_those_of_an_earlier_run(tmp_path: Path) -> None:
    path = tmp_path / "f.jsonl"
    path.write_text('{"id": "old"}\n{"id": "cut o')
    sink = JsonlSink(path)
    sink.write(update())
    sink.close()
    old, truncated, new = path.read_text().splitlines()
    assert (json.loads(old)["id"], truncated, json.loads(new)["id"]) == (
        "old",
        '{"id": "cut o',
        "a",
    )


class Disk:
    """``os.write`` of a disk with so much room left."""

    def __init__(self, room: int) -> None:
        self.room = room
        self._write = os.write

    def write(self, fd: int, data: bytes) -> int:
        taken = self._write(fd, data[: self.room]) if self.room else 0
        self.room -= taken
        if not taken:
            raise OSError(28, "No space left on device")
        return taken


def test_a_full_disk_keeps_rows_until_there_is_room(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    sink = JsonlSink(tmp_path / "f.jsonl")
    sink.write(update(identity="first"))
    disk = Disk(room=100)
    monkeypatch.setattr("reveal_analyzer.sinks.jsonl.os.write", disk.write)
    sink.write(update(identity="second"))
    sink.write(update(identity="third"))
    assert [row["id"] for row in rows(sink.path)] == ["first"], "half a row stayed"
    assert len(sink.kept) == 2
    assert caplog.text.count("cannot be written") == 1, "said more than once"
    disk.room = 1 << 20
    sink.write(update(identity="fourth"))
    assert [row["id"] for row in rows(sink.path)] == ["first", "second", "third", "fourth"]
    assert "written to" in caplog.text
    sink.close()


def test_rows_for_a_full_disk_are_bounded_and_the_loss_is_logged(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    if not Path("/dev/full").exists():
        pytest.skip("no /dev/full")
    monkeypatch.setattr("reveal_analyzer.sinks.jsonl.MAX_KEPT", 3)
    sink = JsonlSink(Path("/dev/full"))
    for number in range(5):
        sink.write(update(identity=str(number)))
    assert len(sink.kept) == 3
    assert sink.dropped == 2
    sink.close()
    assert "3 findings could not be written" in caplog.text


def test_a_file_that_cannot_be_opened_is_an_immediate_error(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="missing"):
        JsonlSink(tmp_path / "missing" / "f.jsonl")


STATUS = {
    "received": 5, "missing": 2, "repeated": 1, "restarts": 0, "refused": 3, "trimmed": 0,
    "groups_recreated": 0, "outages": 1, "waiting": 4, "shards": 64, "connected": 1,
}  # fmt: skip


def scrape(port: int) -> dict[tuple[str, tuple[str, ...]], float]:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=5) as reply:
        text = reply.read().decode()
    return {
        (sample.name, tuple(value for _, value in sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


@pytest.fixture
def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    assert isinstance(port, int)
    return port


def test_a_scraper_sees_stream_and_findings(free_port: int) -> None:
    metrics = Metrics()
    metrics.watch(lambda: STATUS)
    metrics.serve(free_port)
    metrics.verdict.observe(0.03)
    metrics.write(update("Suspected"))
    metrics.write(update("Opened", "a"))
    metrics.write(update("Opened", "b"))
    metrics.write(update("Opened", "c", node_name="n2", subsystem=Subsystem.NETWORK))
    samples = scrape(free_port)
    assert samples["reveal_slices_total", ()] == 5
    assert samples["reveal_slices_missing_total", ()] == 2
    assert samples["reveal_messages_refused_total", ()] == 3
    assert samples["reveal_stream_connected", ()] == 1
    assert samples["reveal_stream_shards", ()] == 64
    assert samples["reveal_findings_open", ("Anomaly", "n1", "High", "CPU")] == 2
    assert samples["reveal_findings_open", ("Anomaly", "n2", "High", "Network")] == 1
    assert samples["reveal_findings_total", ("High", "CPU")] == 2
    assert samples["reveal_suspicions_total", ("CPU",)] == 1
    assert samples["reveal_verdict_seconds_bucket", ("0.05",)] == 1
    assert samples["reveal_verdict_seconds_bucket", ("0.025",)] == 0
    assert any(name == "reveal_build_info" for name, _ in samples)


def test_open_findings_follow_severity_and_resolution() -> None:
    metrics = Metrics()

    def open_by_severity() -> dict[str, float]:
        return {
            sample.labels["severity"]: sample.value
            for family in metrics.registry.collect()
            for sample in family.samples
            if sample.name == "reveal_findings_open"
        }

    first = update("Opened", "a")
    metrics.write(first)
    metrics.write(update("Opened", "b"))
    worse = replace(first.finding, severity=Severity.CRITICAL)
    metrics.write(FindingUpdate(FindingChange.CHANGED, worse))
    assert open_by_severity() == {"High": 1, "Critical": 1}
    metrics.write(FindingUpdate(FindingChange.RESOLVED, replace(worse, state=State.RESOLVED)))
    assert open_by_severity() == {"High": 1}
    metrics.write(update("Opened", "c", node_name="n2"))
    metrics.forget("n1")
    assert open_by_severity() == {"High": 1}
    metrics.forget("n2")
    assert open_by_severity() == {}


def test_a_port_in_use_is_a_readable_error(free_port: int) -> None:
    with socket.socket() as holder:
        holder.bind(("0.0.0.0", free_port))
        holder.listen()
        with pytest.raises(OSError, match=f"port {free_port} for metrics"):
            Metrics().serve(free_port)
