"""Subjects on the GPUs: those with the most memory, without alternating."""

from __future__ import annotations

import random
from itertools import pairwise
from pathlib import Path

from reveal_collector.nvml.gpu_processes import GpuProcess, GpuProcesses, SubjectCache
from reveal_collector.nvml.gpu_processes import SubjectGpuUsage as Usage
from reveal_contract.time_units import NS_PER_SECOND

GIB = 1 << 30


class Subjects(SubjectCache):
    """Every process is a subject of its own."""

    def subject_of(self, pid: int) -> str:
        return f"pod-{pid}"


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
