"""The collector's endpoint before a real promtool and a real Prometheus."""

from __future__ import annotations

import json
import shutil
import socket
import subprocess
import time
import urllib.parse
import urllib.request
from array import array
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry, generate_latest

from reveal_collector.collector import Collector
from reveal_collector.exporter.metrics import serve
from reveal_collector.exporter.samples import SampleExporter
from reveal_collector.readers.raw_slice import RawSlice
from reveal_collector.shipping.sinks import RecordingSink
from reveal_contract import catalogue
from reveal_contract.channels import Channel, ChannelTable
from reveal_contract.metric import Lane
from reveal_contract.recording import RecordingWriter
from reveal_contract.settings import CollectorSettings
from support.polling import wait_until

SETTINGS = CollectorSettings(
    node="n", redis_url="", metrics_series=5000,
    include=("stat", "meminfo", "vmstat", "diskstats", "netdev", "netstat", "snmp", "softnet",
             "loadavg", "hugepages", "numa"),
)  # fmt: skip


@pytest.fixture(scope="module")
def port(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    """The endpoint of a collector that has shipped a slice."""
    recording = tmp_path_factory.mktemp("prometheus") / "r"
    collector = Collector(SETTINGS, [RecordingSink(RecordingWriter(recording))])
    collector.start()
    try:
        wait_until(lambda: collector.recent_tick() is not None)
        yield serve(collector, 0)
    finally:
        collector.stop()


def scrape(port: int) -> bytes:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as answer:
        return bytes(answer.read())


def tool(name: str) -> str:
    found = shutil.which(name)
    if found is None:
        pytest.skip(f"no {name} on PATH (Debian, Ubuntu: apt install prometheus)")
    return found


def test_promtool_reports_no_problem(port: int) -> None:
    lint(scrape(port))


def test_promtool_reports_no_problem_for_any_metric() -> None:
    """The whole catalogue, also of hardware that this machine does not have."""
    fast = tuple(
        Channel(row.name, instance, row.kind)
        for row in catalogue.rows() if row.lane is not Lane.DERIVED
        for instance in ("", "0")
    )  # fmt: skip
    table = ChannelTable(fast, ())
    raw = RawSlice(1, 0, table, array("q", range(len(fast))), array("q"), (0,))
    registry = CollectorRegistry(auto_describe=False)
    registry.register(SampleExporter(lambda: raw, len(fast)))
    lint(generate_latest(registry))


def lint(text: bytes) -> None:
    command = [tool("promtool"), "check", "metrics"]
    result = subprocess.run(command, input=text, capture_output=True, timeout=30, check=False)
    assert result.stderr.decode().splitlines() == []
    assert result.returncode == 0


def test_a_scrape_costs_no_tick(port: int) -> None:
    before = time.thread_time()
    text = scrape(port).decode()
    assert time.thread_time() - before < 1
    assert text.count("\n") > 500
    assert "reveal_collector_ticks_missed_total 0.0" in text


def test_exported_values_are_those_of_the_kernel(port: int) -> None:
    values = dict(
        line.rsplit(" ", 1) for line in scrape(port).decode().splitlines() if line[0] != "#"
    )
    for line in Path("/proc/meminfo").read_text().splitlines():
        if line.startswith("MemTotal:"):
            total = int(line.split()[1]) * 1024
    assert float(values["reveal_memory_mem_total_bytes"]) == total
    assert float(values["process_resident_memory_bytes"]) > 1e6
    assert float(values["reveal_collector_cpu_budget_cores"]) == 0.02
    assert float(values['reveal_collector_source_up{source="stat"}']) == 1


@pytest.fixture
def prometheus(port: int, tmp_path: Path) -> Iterator[int]:
    """A Prometheus that scrapes the endpoint every second; the port of its API."""
    binary = tool("prometheus")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        api = int(free.getsockname()[1])
    (tmp_path / "prometheus.yml").write_text(
        "global: {scrape_interval: 1s}\nscrape_configs:\n"
        f"- {{job_name: reveal, static_configs: [{{targets: ['127.0.0.1:{port}']}}]}}\n"
    )
    command = [
        binary, f"--config.file={tmp_path / 'prometheus.yml'}",
        f"--web.listen-address=127.0.0.1:{api}", f"--storage.tsdb.path={tmp_path / 'data'}",
    ]  # fmt: skip
    with (tmp_path / "log").open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log)
    try:
        yield api
    finally:
        process.terminate()
        process.wait(20)


def asked(api: int, query: str) -> list[dict[str, object]]:
    """The result of an instant query; nothing while Prometheus is not up yet."""
    url = f"http://127.0.0.1:{api}/api/v1/query?query={urllib.parse.quote(query)}"
    try:
        with urllib.request.urlopen(url, timeout=10) as answer:
            return list(json.load(answer)["data"]["result"])
    except OSError:
        return []


def test_a_real_prometheus_takes_every_series(port: int, prometheus: int) -> None:
    wait_until(lambda: bool(asked(prometheus, "rate(process_cpu_seconds_total[10s]) > 0")), 40)
    (up,) = asked(prometheus, 'up{job="reveal"}')
    assert up["value"][1] == "1"
    (kept,) = asked(prometheus, "scrape_samples_scraped")
    samples = [line for line in scrape(port).decode().splitlines() if line[0] != "#"]
    assert int(kept["value"][1]) == pytest.approx(len(samples), abs=20)  # a source may come or go
    (busy,) = asked(prometheus, "sum(rate(reveal_cpu_idle_by_cpu_seconds_total[10s]))")
    assert float(busy["value"][1]) >= 0


def test_the_switch_is_off_unless_asked_for(tmp_path: Path) -> None:
    quiet = replace(SETTINGS, metrics_series=0, include=("stat",))
    collector = Collector(quiet, [RecordingSink(RecordingWriter(tmp_path / "r"))])
    collector.start()
    try:
        wait_until(lambda: collector.recent_tick() is not None)
        assert b"reveal_cpu_user" not in scrape(serve(collector, 0))
    finally:
        collector.stop()
