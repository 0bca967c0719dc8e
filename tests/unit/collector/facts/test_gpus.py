"""Facts of GPUs through the real pynvml and a scripted driver library."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from reveal_collector.facts import gpus
from reveal_collector.facts.device_queries import query_nvml
from reveal_collector.kernel_interfaces.errors import Unsupported
from reveal_collector.readers.source import Roots
from reveal_contract.facts import Gpu
from support.fake_nvml import GIB, Script

FIRST, SECOND = "0000:19:00.0", "0000:2a:00.0"


def test_gpus_with_their_modes_and_versions(script: Script) -> None:
    script.change({
        "0.persistence": 1, "1.persistence": 0, "0.ecc": 1, "1.mig": 1,
        "driver": "550.90.07", "cuda": 12040,
    })  # fmt: skip
    facts = query_nvml(Roots())
    first, second = facts.gpus
    assert first == Gpu(FIRST, "NVIDIA H100 80GB HBM3", first.uuid, True, True, False)
    assert (second.persistence, second.ecc, second.mig) == (False, None, True)
    assert facts.versions == {"nvidia": "550.90.07", "cuda": "12.4"}


def test_processes_and_where_the_kernel_lets_them_run(script: Script) -> None:
    script.change({
        "0.process.0": f"{os.getpid()} {GIB} c", "1.process.0": f"{os.getpid()} {GIB} c",
        "1.process.1": f"999999999 {GIB} c",
    })  # fmt: skip
    facts = query_nvml(Roots())
    [process] = gpus.processes(Roots(), facts.processes)
    assert (process.pid, process.gpus) == (os.getpid(), (FIRST, SECOND))
    assert process.cpus
    assert process.memory


def test_a_driver_that_answers_little_is_asked_on(script: Script) -> None:
    script.change({"0.call.nvmlDeviceGetComputeRunningProcesses_v3": 3})
    facts = query_nvml(Roots())
    assert [(gpu.persistence, gpu.ecc) for gpu in facts.gpus] == [(None, None)] * 2
    assert (facts.processes, facts.versions) == ([], {})


def test_a_missing_driver_is_reported(script: Script) -> None:
    script.change({"call.nvmlInitWithFlags": 9})
    with pytest.raises(Unsupported, match="not loaded"):
        query_nvml(Roots())


def test_of_too_many_processes_every_gpu_keeps_some(tmp_path: Path) -> None:
    for pid in range(1, 202):
        folder = tmp_path / str(pid)
        folder.mkdir()
        (folder / "status").write_text(f"Name:\tp{pid}\nCpus_allowed_list:\t0-3\n")
    busy = [(pid, "0000:01:00.0") for pid in range(1, 201)]
    found = gpus.processes(Roots(proc=tmp_path), [*busy, (201, "0000:02:00.0")])
    pids = [process.pid for process in found]
    assert (len(pids), pids[0], pids[-1], pids == sorted(pids)) == (64, 1, 201, True)
