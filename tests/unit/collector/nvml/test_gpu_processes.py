"""Subjects on the GPUs: those with the most memory, without alternating."""

from __future__ import annotations

import random
from itertools import pairwise
from pathlib import Path

import pytest

from reveal_collector.nvml.gpu_processes import (
    GpuProcess,
    GpuProcesses,
    SubjectCache,
    contention,
)
from reveal_collector.nvml.gpu_processes import SubjectGpuUsage as Usage
from reveal_contract.time_units import NS_PER_SECOND

GIB = 1 << 30


class Subjects(SubjectCache):
    """Every process is a subject of its own."""

    def subject_of(self, pid: int) -> str:
        return f"pod-{pid}"


def stat(proc: Path, pid: int, start: int) -> Path:
    """Write the stat file of a process."""
    folder = proc / str(pid)
    folder.mkdir(exist_ok=True)
    fields = ["S", "1", str(pid), *["0"] * 16, str(start), *["0"] * 20]
    (folder / "stat").write_text(f"{pid} (python3) {' '.join(fields)}\n")
    return folder


def test_a_process_that_ended_keeps_its_subject(tmp_path: Path) -> None:
    cache = SubjectCache(tmp_path, lambda pid: f"pod-{pid}")
    folder = stat(tmp_path, 7, start=100)
    assert cache.subject_of(7) == "pod-7"
    (folder / "stat").unlink()
    cache.renew()
    assert cache.subject_of(7) == "pod-7"
    cache.retain([])
    assert cache.subject_of(7) == "unattributed"


def test_a_reused_pid_is_another_process(tmp_path: Path) -> None:
    owners = iter(["old", "new", "renamed"])
    cache = SubjectCache(tmp_path, lambda pid: next(owners))
    found = []
    for start in (100, 100, 200):
        stat(tmp_path, 7, start)
        found.append(cache.subject_of(7))
    cache.renew()
    assert [*found, cache.subject_of(7)] == ["old", "old", "new", "renamed"]


@pytest.mark.parametrize(
    ("shares", "expected"),
    [
        ([], 0),
        ([9800], 0),
        ([5060, 4935], 4930),  # two programs that both want all of it
        ([4000, 2000], 0),  # each has what it wants
        ([6000, 3000], 2000),
        ([9900, 9900], 9900),  # beyond the whole: under MPS both run at the same time
        ([4000, 3000, 3000], 6000),
    ],
)
def test_contention_is_what_others_use_of_a_gpu_without_time_left(
    shares: list[int], expected: int
) -> None:
    assert contention(shares) == expected


def test_processes_of_the_same_subject_do_not_contend(tmp_path: Path) -> None:
    gpu = GpuProcesses()
    gpu.busy = {7: 50.0, 8: 49.0}
    assert Usage(SubjectCache(tmp_path, lambda _: "train")).contention(gpu) == 0  # unattributed
    for pid in gpu.busy:
        stat(tmp_path, pid, start=1)
    assert Usage(SubjectCache(tmp_path, lambda _: "train")).contention(gpu) == 0
    assert Usage(SubjectCache(tmp_path, str)).contention(gpu) == 4800
    gpu.is_sampled = False
    assert Usage(SubjectCache(tmp_path, str)).contention(gpu) is None


def displayed(usage: Usage, memory: dict[int, int], second: int) -> list[str]:
    gpu = GpuProcesses()
    gpu.processes = tuple(GpuProcess(pid, used) for pid, used in memory.items())
    values = usage.values([gpu], second * NS_PER_SECOND)
    return [subject for metric, subject in values if metric == "gpu.subject.memory_used"]


def test_subjects_of_similar_memory_keep_their_columns(tmp_path: Path) -> None:
    rng, usage = random.Random(3), Usage(Subjects(tmp_path))
    tables = []
    for second in range(300):
        memory = {pid: round(GIB * rng.gauss(1, 0.1)) for pid in range(Usage.MAX_SUBJECTS + 20)}
        tables.append(displayed(usage, memory, second))
    assert len(tables[0]) == Usage.MAX_SUBJECTS
    assert all(a == b for a, b in pairwise(tables))
    memory = dict.fromkeys(range(Usage.MAX_SUBJECTS + 20), GIB) | {999: 60 * GIB}
    for second in range(300, 330):
        last = displayed(usage, memory, second)
    assert "pod-999" in last


def test_a_subject_that_left_makes_room_immediately(tmp_path: Path) -> None:
    usage = Usage(Subjects(tmp_path))
    memory = dict.fromkeys(range(Usage.MAX_SUBJECTS), GIB)
    displayed(usage, memory, 0)
    del memory[7]
    assert "pod-7" in displayed(usage, memory, 1)
    assert "pod-7" not in displayed(usage, memory | {999: GIB}, 2)
