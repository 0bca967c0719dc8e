"""The collector as a process of its own, whose loader finds a driver library: GPUs end to end."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from reveal_contract.channels import ChannelTable
from reveal_contract.metric import Kind
from reveal_contract.recording import RecordingReader
from reveal_contract.wire import Message, decode
from support import fake_nvml
from support.fake_nvml import GIB, SCRIPT, Script, hgx_h100

pytestmark = pytest.mark.skipif(not Path("/proc/stat").exists(), reason="no procfs")

Slices = list[tuple[Message, ChannelTable]]


@pytest.fixture
def script(tmp_path: Path) -> Script:
    fake_nvml.build(tmp_path)
    return Script(tmp_path / "script", hgx_h100(4))


def slices(path: Path) -> Slices:
    slices = []
    for record in RecordingReader(path):
        if record.table is not None:
            gauges = np.array([c.kind is not Kind.COUNTER for c in record.table.fast], np.bool_)
            slices.append((decode(record.data, gauges), record.table))
    return slices


def collect(script: Script, until: Callable[[Slices], bool]) -> Slices:
    """What a collector of GPUs alone records until the condition holds."""
    recording = script.path.with_suffix(".rvl")
    environment = os.environ | {
        "LD_LIBRARY_PATH": str(script.path.parent),
        SCRIPT: str(script.path),
    }
    command = [sys.executable, "-m", "reveal_collector", "--node", "n1", "--record", str(recording)]
    command += ["--include", "nvml", "nvml-state", "nvml-subjects"]
    process = subprocess.Popen(command, env=environment, stderr=subprocess.PIPE)
    try:
        for _ in range(60):
            try:
                process.wait(0.25)
            except subprocess.TimeoutExpired:
                if recording.exists() and until(slices(recording)):
                    break
            else:
                assert process.stderr
                pytest.fail(process.stderr.read().decode())
    finally:
        process.terminate()
        process.communicate(timeout=10)
    return slices(recording)


def column(slices: Slices, metric: str, instance: str) -> list[int | None]:
    """The values of one channel, one a tick or one a slice."""
    found: list[int | None] = []
    for message, table in slices:
        for channels, values, missing in (
            (table.fast, message.fast, message.fast_missing),
            (table.slow, message.slow[None], message.slow_missing[None]),
        ):
            for index, channel in enumerate(channels):
                if (channel.metric, channel.instance) == (metric, instance):
                    pairs = zip(values[:, index].tolist(), missing[:, index].tolist(), strict=True)
                    found += [None if gone else value for value, gone in pairs]
    return found


def test_a_gpu_that_is_lost_midway_shows_on_the_wire(script: Script) -> None:
    script.change({"0.process.0": f"{os.getpid()} {GIB} c"})
    began: list[int] = []

    def lose(slices: Slices) -> bool:
        if len(slices) >= 2 and not began:
            began.append(len(slices))
            script.change({"1.call.*": 15, "xid.0": "1 79"})
        return 1 in column(slices, "gpu.lost", "1") and len(slices) >= began[0] + 2

    slices = collect(script, lose)
    assert len(slices) >= 4
    assert column(slices, "gpu.utilization", "1")[0] == 91
    assert column(slices[-1:], "gpu.utilization", "1")[-1] is None
    # a busy machine may miss a tick, which is missing of all alike
    assert set(column(slices, "gpu.utilization", "3")) - {None} == {93}
    assert len(column(slices[:1], "gpu.utilization", "3")) >= 10  # one a tick
    assert sum(each or 0 for each in column(slices, "gpu.xid.hardware", "1")) == 1
    assert column(slices, "gpu.xid.last", "1")[-1] == 79
    subjects = {c.instance for _, table in slices for c in table.slow
                if c.metric == "gpu.subject.memory_used"}  # fmt: skip
    assert len(subjects) == 1
    assert column(slices, "gpu.subject.memory_used", subjects.pop())[-1] == GIB


def test_throttled_time_travels_as_differences(script: Script) -> None:
    steps = " ".join(str(1_000_000 + 60_000 * second) for second in range(60))
    script.change({"2.field.75": steps, "step_ms": 1000})
    slices = collect(script, lambda slices: len(slices) >= 5)
    values = [
        each for each in column(slices, "gpu.throttled_time.thermal", "2") if each is not None
    ]
    assert values.count(60_000) >= len(values) - 1  # the fake driver steps at a time of its own


def tool(script: Script, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a command of ``reveal`` with the scripted driver library."""
    environment = os.environ | {
        "LD_LIBRARY_PATH": str(script.path.parent),
        SCRIPT: str(script.path),
    }
    command = [sys.executable, "-m", "reveal_cli", *arguments]
    return subprocess.run(
        command, env=environment, capture_output=True, text=True, timeout=120, check=False
    )


@pytest.mark.parametrize("call", ["nvmlInitWithFlags", "nvmlDeviceGetName"])
def test_a_driver_that_hangs_is_named_by_the_doctor_beside_the_rest(
    script: Script, call: str
) -> None:
    script.change({f"delay.{call}": 3_600_000_000})
    ended = tool(script, "doctor", "--json")
    assert ended.returncode == 0, ended.stderr
    found = json.loads(ended.stdout)
    assert found["channels"] > 100
    assert found["facts"]["kernel"]["release"]
    missing = [each["lacking"] for each in found["advice"] if each["lacking"].startswith("nvml")]
    assert len(missing) == 3
    assert all("has not answered since" in each for each in missing)


def test_a_scan_of_a_host_whose_gpu_hangs_has_the_hosts_own_sources(script: Script) -> None:
    script.change({"delay.nvmlDeviceGetTemperature": 3_600_000_000})
    ended = tool(script, "scan", "--duration", "15s", "--warmup", "10s")
    assert ended.returncode == 0, ended.stderr
    assert "Not read: nvml: has not answered since" in " ".join(ended.stdout.split())
