from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from reveal_cli.faults import (
    FAULTS,
    Culprit,
    Fault,
    FaultError,
    FaultTarget,
    UnknownFaultError,
    find,
)
from reveal_cli.faults.base import Injection, Needs
from reveal_cli.faults.disk import disk_of
from reveal_cli.faults.programs import PROGRAMS, paced
from reveal_cli.workloads import Workload, WorkloadError
from reveal_contract.metric import Subsystem

CPU = frozenset({Subsystem.CPU})


def _nothing(injection: Injection) -> None:
    raise AssertionError("must not be injected")


def test_names_are_unique_and_subsystems_declared() -> None:
    assert [name for name, count in Counter(f.name for f in FAULTS).items() if count > 1] == []
    assert all(fault.subsystems and fault.about and fault.kind for fault in FAULTS)


def test_full_strength_covers_every_area_of_a_host() -> None:
    kinds = {fault.kind: fault.subsystems for fault in FAULTS if not fault.weak}
    assert len(kinds) >= 14
    areas = frozenset().union(*kinds.values())
    assert areas == set(Subsystem)


def test_every_weak_fault_has_a_strong_counterpart() -> None:
    strong = {fault.kind for fault in FAULTS if not fault.weak}
    assert {fault.kind for fault in FAULTS if fault.weak} <= strong


def test_a_fault_without_a_process_has_no_culprit() -> None:
    assert find("loss_1").culprit is Culprit.NOBODY
    assert find("cpu_quota").culprit is Culprit.WORKLOAD
    assert find("cpu_contend").culprit is Culprit.OWN


def test_an_unknown_fault_lists_the_known_faults() -> None:
    with pytest.raises(UnknownFaultError) as raised:
        find("cpu_contennd")
    assert "did you mean cpu_contend?" in str(raised.value)
    assert "oom_kill" in str(raised.value)


@pytest.mark.parametrize(
    ("needs", "sentence"),
    [
        (Needs(binaries=("no-such-tool",)), "needs no-such-tool (see bench/install-tools)"),
        (Needs(files=("/proc/no/such",)), "this kernel has no /proc/no/such"),
        (Needs(controllers=("no-such",)), "needs the cgroup controller no-such"),
        (Needs(workload=True), "needs a workload to act on"),
        (Needs(check=lambda _: "not today"), "not today"),
        (Needs(), ""),
    ],
)
def test_why_not(needs: Needs, sentence: str) -> None:
    fault = Fault("x", "x", CPU, "", _nothing, needs=needs)
    assert fault.unsupported_reason(FaultTarget()) == sentence


def test_an_impossible_fault_is_refused_before_any_change() -> None:
    fault = Fault("x", "x", CPU, "", _nothing, needs=Needs(binaries=("no-such-tool",)))
    with pytest.raises(FaultError, match="x: needs no-such-tool"):
        fault.on(FaultTarget()).start()


def test_stopping_what_never_started_does_nothing() -> None:
    Fault("x", "x", CPU, "", _nothing).on(FaultTarget()).stop()


def test_the_menu_shows_whether_each_fault_works_here(tmp_path: Path) -> None:
    for fault in FAULTS:
        assert isinstance(fault.unsupported_reason(FaultTarget(scratch=tmp_path)), str)


def test_without_a_gpu_its_faults_and_its_job_are_refused_with_a_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("reveal_cli.faults.cuda._CONTROL", tmp_path / "nvidiactl")
    refused = {
        fault.name for fault in FAULTS
        if fault.unsupported_reason(FaultTarget()) == "this host has no NVIDIA GPU"
    }  # fmt: skip
    assert refused == {"gpu_shared", "gpu_shared_weak", "gpu_memory", "gpu_pcie"}
    with pytest.raises(WorkloadError, match="gpu: this host has no NVIDIA GPU"):
        Workload("gpu", tmp_path)


def test_a_driver_that_is_not_installed_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("reveal_cli.faults.cuda._CONTROL", tmp_path)
    monkeypatch.setattr("reveal_cli.faults.cuda._DRIVER", "libcuda-no-such.so.1")
    assert "libcuda-no-such.so.1" in find("gpu_pcie").unsupported_reason(FaultTarget())


def test_memory_file_systems_are_on_no_disk() -> None:
    assert disk_of(Path("/proc")) is None


def test_programs_are_named_as_their_functions() -> None:
    assert all(name == program.__name__ for name, program in PROGRAMS.items())


def test_unpaced_counts_without_waiting() -> None:
    counter = paced(0)
    assert [next(counter) for _ in range(1000)][-1] == 999


def test_an_unknown_workload_is_refused(tmp_path: Path) -> None:
    with pytest.raises(WorkloadError, match="there are train, server, loader, gpu"):
        Workload("dance", tmp_path)
