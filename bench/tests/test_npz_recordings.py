from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from faultbench import npz_columns, npz_recordings
from reveal_contract.channels import ChannelTable
from reveal_contract.metric import Kind, Subsystem
from reveal_contract.wire import Message

NAMES = [
    "stat.cpu0.user",
    "softirq.NET_RX.cpu0",
    "softirq.NET_RX.cpu1",
    "vmstat.nr_kernel_stack",
    "disk.vda.rsectors",
    "disk.loop0.reads",
    "cg.flt.cpuacct.usage.value",
    "stat.btime",
]


def _write(path: Path, counted: NDArray[np.int64], gap: int = 0) -> Path:
    times = np.arange(len(counted)) * 100_000_000 + (np.arange(len(counted)) >= gap) * 10**12
    np.savez(
        path, first=counted[0], steps=np.diff(counted, axis=0), names=np.array(NAMES),
        time_ns=times, gap=gap,
    )  # fmt: skip
    return path


@pytest.fixture
def counted() -> NDArray[np.int64]:
    ticks = np.arange(31)
    zeros = np.zeros(31, np.int64)
    columns = [
        ticks,
        ticks * 2,
        ticks * 3,
        1000 - ticks,
        ticks * 8,
        zeros,
        ticks * 10**7,
        zeros + 5,
    ]
    return np.stack(columns, axis=1).astype(np.int64)


def _column(message: Message, table: ChannelTable, label: str) -> list[int]:
    position = [channel.label for channel in table.fast].index(label)
    return [int(value) for value in message.fast[:, position]]


def test_counters_become_differences_and_gauges_levels(
    tmp_path: Path, counted: NDArray[np.int64]
) -> None:
    loaded = list(npz_recordings.load(_write(tmp_path / "run.npz", counted)))
    assert [message.sequence for message, _ in loaded] == [0, 1, 2]
    message, table = loaded[1]
    assert message.fast.shape == (10, len(table.fast))
    assert _column(message, table, "cpu.user{0}") == [1] * 10
    assert _column(message, table, "memory.vm.nr_kernel_stack") == [
        1000 - tick for tick in range(11, 21)
    ]
    assert _column(message, table, "storage.disk.read_bytes{vda}") == [8] * 10
    assert not message.fast_missing.any()


def test_sums_over_cpus_and_what_is_left_out(tmp_path: Path, counted: NDArray[np.int64]) -> None:
    message, table = next(npz_recordings.load(_write(tmp_path / "run.npz", counted)))
    assert _column(message, table, "network.softirqs{NET_RX}") == [5] * 10
    assert _column(message, table, "network.softirqs.percpu{NET_RX/1}") == [3] * 10
    labels = {channel.label for channel in (*table.fast, *table.slow)}
    assert "storage.disk.reads{loop0}" not in labels  # never did anything
    assert "cpu.subject.usage{/reveal-fault-job}" in labels


def test_units_are_the_catalogues() -> None:
    result = {each.label: each for each in npz_columns.channels(NAMES, {})}
    assert result["cpu.user{0}"].scale == 1e7
    assert result["memory.vm.nr_kernel_stack"].scale == 1024
    assert result["storage.disk.read_bytes{vda}"].scale == 512
    assert result["memory.vm.nr_kernel_stack"].kind is Kind.GAUGE


def test_the_slice_across_the_jump_in_time_is_dropped(
    tmp_path: Path, counted: NDArray[np.int64]
) -> None:
    loaded = npz_recordings.load(_write(tmp_path / "run.npz", counted, gap=20))
    assert [message.sequence for message, _ in loaded] == [0, 2]


def test_a_decreasing_counter_loses_a_single_sample(
    tmp_path: Path, counted: NDArray[np.int64]
) -> None:
    counted[15:, 0] -= 14
    loaded = list(npz_recordings.load(_write(tmp_path / "run.npz", counted)))
    message, table = loaded[1]
    position = [channel.label for channel in table.fast].index("cpu.user{0}")
    assert np.flatnonzero(message.fast_missing[:, position]).tolist() == [4]


def test_runs_and_their_subjects(tmp_path: Path) -> None:
    common = {"workload": "train", "length_s": 100, "other_cores": 0.1}
    fault = {"warmup_s": 60, "onset_s": 70, "offset_s": 84, "subsystems": ["CPU"], "weak": True}
    rows = [
        {"file": "a.npz", "fault": "cpu_contend", **common, **fault},
        {"file": "b.npz", "fault": "loss_1", **common, **fault},
        {"file": "c.npz", "fault": "quota_half", **common, **fault},
        {"file": "d.npz", "fault": None, **common},
    ]
    (tmp_path / "runs.json").write_text(json.dumps(rows))
    result = npz_recordings.runs(tmp_path)
    assert [run.subject for run in result] == ["/reveal-fault-job", None, "/reveal-work-job", None]
    assert result[0].subsystems == {Subsystem.CPU}
    assert (result[3].onset, result[3].offset) == (100, 100)


@pytest.mark.parametrize("text", ["", "[{}]", '[{"fault": "x"}]', "3"])
def test_a_bad_index_gives_a_single_sentence(tmp_path: Path, text: str) -> None:
    (tmp_path / "runs.json").write_text(text)
    with pytest.raises(npz_recordings.HostFaultsError, match=r"runs\.json is not an index"):
        npz_recordings.runs(tmp_path)


def test_a_bad_file_gives_a_single_sentence(tmp_path: Path) -> None:
    (tmp_path / "x.npz").write_bytes(b"no zip")
    with pytest.raises(npz_recordings.HostFaultsError, match=r"x\.npz is not a recorded run"):
        list(npz_recordings.load(tmp_path / "x.npz"))
