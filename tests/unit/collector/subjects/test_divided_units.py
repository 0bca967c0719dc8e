"""Units in which several cgroups hold different processes: their children are subjects."""

from __future__ import annotations

from pathlib import Path

import pytest

from reveal_collector.subjects.cgroup_files import hierarchies
from reveal_collector.subjects.tracker import SubjectSelection, SubjectTracker
from reveal_contract.subjects import Identity, SubjectKind

UNIT = "system.slice/grid.service"


def add(root: Path, path: str, *pids: int) -> None:
    """Add a cgroup of version 2 with processes, and those above it."""
    folder = root / path
    folder.mkdir(parents=True, exist_ok=True)
    for each in (root, folder):
        (each / "cgroup.controllers").write_text("cpu\n")
        (each / "cpu.stat").write_text("usage_usec 1000\n")
    (folder / "cgroup.procs").write_text("".join(f"{pid}\n" for pid in pids))


def tracker(root: Path) -> SubjectTracker:
    return SubjectTracker(hierarchies(root), SubjectSelection())


def subjects(found: SubjectTracker, now: float) -> dict[str, Identity]:
    """Return the subjects of the processes that exist now, by the last part of their cgroup."""
    found.update(now)
    return {each.cgroup.rpartition("/")[2]: each for each in found.identities if not each.until_ns}


@pytest.mark.parametrize(
    ("cgroups", "expected"),
    [
        # a manager without a known name, beside its jobs, with some of them in steps
        ({"daemon": [1], "job-17": [2, 3], "job-18/step-0": [4]}, ["daemon", "job-17", "job-18"]),
        # version 1: the manager's own processes are in the unit itself
        ({"": [1], "job-17": [2]}, ["grid.service", "job-17"]),
        # all jobs in a cgroup of their own
        ({"jobs/17/step-0": [1], "jobs/17/step-1": [2], "jobs/18": [3]}, ["17", "18"]),
        # a single cgroup of all processes, as of systemd-udevd.service/udev
        ({"udev": [1, 2]}, ["grid.service"]),
        ({"jobs/17": [1]}, ["grid.service"]),
        # monitor and container of systemd-nspawn, of podman --cgroups=split
        ({"supervisor": [1], "payload": [2]}, ["grid.service"]),
        ({"runtime": [1], "libpod-payload-1": [2]}, ["grid.service"]),
        # threads of one process, as of a virtual machine
        ({"emulator": [7], "vcpu0": [7], "vcpu1": [7]}, ["grid.service"]),
        ({"libvirt": [7], "libvirt/vcpu0": [], "libvirt/vcpu1": []}, ["grid.service"]),
        # processes outside of this PID namespace
        ({"a": [0], "b": [0]}, ["grid.service"]),
    ],
)  # fmt: skip
def test_who_is_a_subject_of_a_unit(
    tmp_path: Path, cgroups: dict[str, list[int]], expected: list[str]
) -> None:
    for path, pids in cgroups.items():
        add(tmp_path, f"{UNIT}/{path}", *pids)
    found = subjects(tracker(tmp_path), 0.0)
    assert sorted(found) == expected
    for name, identity in found.items():
        kind = SubjectKind.UNIT if name == "grid.service" else SubjectKind.CGROUP
        assert (identity.kind, identity.name) == (kind, name)


def test_the_last_job_of_a_divided_unit_stays_the_same_subject(tmp_path: Path) -> None:
    for name, pid in (("job-17", 1), ("job-18", 2)):
        add(tmp_path, f"{UNIT}/{name}", pid)
    found = tracker(tmp_path)
    both = subjects(found, 0.0)
    (tmp_path / UNIT / "job-18/cgroup.procs").write_text("")
    left = subjects(found, 60.0)
    assert list(left) == ["job-17"]
    assert left["job-17"] == both["job-17"]


def test_a_unit_that_started_again_is_examined_again(tmp_path: Path) -> None:
    for name, pid in (("job-17", 1), ("job-18", 2)):
        add(tmp_path, f"{UNIT}/{name}", pid)
    found = tracker(tmp_path)
    subjects(found, 0.0)
    (tmp_path / UNIT).rename(tmp_path / "ended")
    add(tmp_path, f"{UNIT}/job-19", 3)
    assert "grid.service" in subjects(found, 60.0)


def test_a_process_belongs_to_the_child_that_it_is_in(tmp_path: Path) -> None:
    for name, pid in (("job-17", 1), ("job-18", 2)):
        add(tmp_path / "cgroup", f"{UNIT}/{name}", pid)
    add(tmp_path / "proc", "2")
    (tmp_path / "proc/2/cgroup").write_text(f"0::/{UNIT}/job-18/step-0\n")
    found = tracker(tmp_path / "cgroup")
    found.update(0.0)
    assert found.subject_of(2, tmp_path / "proc") == f"/{UNIT}/job-18"


def test_the_steps_of_a_job_with_a_known_name_are_no_subjects(tmp_path: Path) -> None:
    scope = "system.slice/slurmstepd.scope"
    add(tmp_path, f"{scope}/system", 1)
    for job, pids in (("s5K1KKYAYG5D00", (2, 3)), ("s5K1KKYAYH6E00", (4, 5))):
        for step, pid in enumerate(pids):
            add(tmp_path, f"{scope}/{job}/step_{step}/user/task_0", pid)
    found = subjects(tracker(tmp_path), 0.0)
    jobs = {name: each.name for name, each in found.items() if each.kind is SubjectKind.JOB}
    assert jobs == {name: name for name in ("s5K1KKYAYG5D00", "s5K1KKYAYH6E00")}
    assert set(found) - set(jobs) == {"slurmstepd.scope"}


def test_a_slot_of_htcondor_runs_another_job_as_another_subject(tmp_path: Path) -> None:
    slot = "htcondor/condor_var_lib_condor_execute_slot1_2@host"
    root = tmp_path / "cgroup"
    add(root, slot, 1)
    found = tracker(root)
    (first,) = subjects(found, 0.0).values()
    (root / slot).rename(tmp_path / "ended")
    add(root, slot, 2)
    (second,) = subjects(found, 60.0).values()
    assert first.name == second.name == "slot1_2@host"
    assert first.uid != second.uid
