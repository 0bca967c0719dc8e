"""Cgroup paths: the forms of real runtimes, and arbitrary ones."""
# ruff: noqa: E501 - paths are whole, as they are met

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reveal_collector.subjects.cgroup_paths import (
    fallback_path,
    process_cgroups,
    subject_path,
    workload_paths,
)
from reveal_contract.subjects import SubjectKind
from support.property_tests import examples

UID = "1b2c3d4e-5f60-4718-8a9b-0c1d2e3f4a5b"
OTHER = "ffffffff-0000-4111-8222-333333333333"
HASH = "5d41402abc4b2a76b9719d911017c592"
ID, ID2 = "a1" * 32, "b2" * 32
SLICE = UID.replace("-", "_")
POD, CONTAINER, UNIT = SubjectKind.POD, SubjectKind.CONTAINER, SubjectKind.UNIT
JOB, CGROUP = SubjectKind.JOB, SubjectKind.CGROUP

SHAPES = [
    # systemd driver
    (f"/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod{SLICE}.slice/cri-containerd-{ID}.scope", POD, UID, ID, "Burstable", 3),
    (f"/kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-pod{SLICE}.slice", POD, UID, "", "BestEffort", 3),
    (f"/kubepods.slice/kubepods-pod{SLICE}.slice/cri-containerd-{ID}.scope", POD, UID, ID, "Guaranteed", 2),
    (f"/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod{SLICE}.slice/crio-{ID}.scope/container", POD, UID, ID, "Burstable", 3),
    (f"/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod{SLICE}.slice/crio-{ID}", POD, UID, ID, "Burstable", 3),
    (f"/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod{SLICE}.slice/crio-conmon-{ID}.scope", POD, UID, "", "Burstable", 3),
    (f"/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod{SLICE}.slice/docker-{ID}.scope", POD, UID, ID, "Burstable", 3),
    (f"/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod{HASH}.slice/cri-containerd-{ID}.scope", POD, HASH, ID, "Burstable", 3),
    # cgroupfs driver
    (f"/kubepods/burstable/pod{UID}/{ID}", POD, UID, ID, "Burstable", 3),
    (f"/kubepods/besteffort/pod{UID}/{ID}", POD, UID, ID, "BestEffort", 3),
    (f"/kubepods/pod{UID}/{ID}", POD, UID, ID, "Guaranteed", 2),
    (f"/kubepods/burstable/pod{HASH}/crio-{ID}", POD, HASH, ID, "Burstable", 3),
    # containerd's older form: one folder whose name holds colons
    (f"/system.slice/containerd.service/kubepods-besteffort-pod{SLICE}.slice:cri-containerd:{ID}", POD, UID, ID, "BestEffort", 3),
    # nested: kind, k3s in docker, docker in a pod, a pod's view of another
    (f"/system.slice/docker-{ID2}.scope/kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-burstable.slice/kubelet-kubepods-burstable-pod{SLICE}.slice/cri-containerd-{ID}.scope", POD, UID, ID, "Burstable", 6),
    (f"/docker/{ID2}/kubelet/kubepods/burstable/pod{UID}/{ID}", POD, UID, ID, "Burstable", 6),
    (f"/kubepods/burstable/pod{OTHER}/{ID2}/docker/{ID}/kubepods/besteffort/pod{UID}/{ID}", POD, UID, ID, "BestEffort", 9),
    (f"/kubepods/burstable/pod{UID}/{ID}/docker/{ID2}", POD, UID, ID, "Burstable", 3),
    (f"/../../kubepods/burstable/pod{UID}/{ID}", POD, UID, ID, "Burstable", 3),
    (f"/../../pod{UID}/{ID}", POD, UID, ID, "Guaranteed", 1),
    # without Kubernetes
    (f"/docker/{ID}", CONTAINER, ID, ID, "", 2),
    (f"/system.slice/docker-{ID}.scope", CONTAINER, ID, ID, "", 2),
    (f"/system.slice/docker-{ID}.scope/system.slice/nginx.service", CONTAINER, ID, ID, "", 2),
    (f"/docker/{ID2}/docker/{ID}", CONTAINER, ID, ID, "", 4),
    (f"/machine.slice/libpod-{ID}.scope/container", CONTAINER, ID, ID, "", 2),
    (f"/user.slice/user-1000.slice/user@1000.service/user.slice/libpod-{ID}.scope/container", CONTAINER, ID, ID, "", 5),
    (f"/system.slice/nerdctl-{ID}.scope", CONTAINER, ID, ID, "", 2),
    ("/lxc/web01", CONTAINER, "web01", "web01", "", 2),
    ("/lxc.payload.web01/init.scope", CONTAINER, "web01", "web01", "", 1),
    ("/slurm/uid_1000/job_42/step_0/task_0", JOB, "42", "", "", 3),
    ("/slurm_node7/uid_1000/job_42/step_batch", JOB, "42", "", "", 3),
    ("/system.slice/slurmstepd.scope/job_42/step_0/user/task_0", JOB, "42", "", "", 3),
    ("/system.slice/node7_slurmstepd.scope/job_42/step_extern", JOB, "42", "", "", 3),
    (f"/slurm/uid_1000/job_42/{ID}", JOB, "42", ID, "", 3),
    # Slurm 26.05 names jobs by SLUID, unless CgroupJobIdPaths=yes
    ("/system.slice/slurmstepd.scope/s5K1KKYAYG5D00/step_0/user/task_0", JOB, "s5K1KKYAYG5D00", "", "", 3),
    ("/system.slice/node7_slurmstepd.scope/sEKNKTV3WPV500/step_batch/user", JOB, "sEKNKTV3WPV500", "", "", 3),
    (f"/system.slice/docker-{ID}.scope/system.slice/slurmstepd.scope/sFNDM35NQ39R00/step_0", JOB, "sFNDM35NQ39R00", "", "", 5),
    # PBS of cgroup versions 1 and 2, with earlier forms; an array job; TORQUE
    ("/pbs_jobs.service/jobid/12345.gadi-pbs", JOB, "12345.gadi-pbs", "", "", 3),
    ("/pbs_jobs.service/jobs/12345.pbs/tasks", JOB, "12345.pbs", "", "", 3),
    ("/pbs.service/jobid/7[3].server.example.org", JOB, "7[3].server.example.org", "", "", 3),
    ("/pbspro/0.headnode", JOB, "0.headnode", "", "", 2),
    ("/pbs.slice/pbs-12.server.slice", JOB, "12.server", "", "", 2),
    ("/torque/1234.server/R0.t0", JOB, "1234.server", "", "", 2),
    # HTCondor: the slot has one job after another, so the uid is the inode
    ("/htcondor/condor_var_lib_condor_execute_slot1_1@host.example.org", JOB, "", "", "", 2),
    ("/system.slice/htcondor/condor_var_lib_condor_execute_slot1_23@host/control", JOB, "", "", "", 3),
    ("/system.slice/htcondor/_condor_slot1_11@myhost.slice/_condor_slot1_11@myhost.scope", JOB, "", "", "", 3),
    # LSF
    ("/lsf/cluster1/job.6.2451.1404833812", JOB, "6", "", "", 3),
    ("/lsf/cluster1/job.6[2].2451.1404833812", JOB, "6[2]", "", "", 3),
    # Flux runs each job in a unit
    ("/user.slice/user-500.slice/user@500.service/app.slice/imp-shell-1-fUdKSFCzEes.service", UNIT, "", "", "", 5),
    ("/system.slice/ssh.service", UNIT, "", "", "", 2),
    ("/user.slice/user-0.slice/session-3.scope", UNIT, "", "", "", 3),
    ("/user.slice/user-1000.slice/user@1000.service/app.slice/app-editor.scope", UNIT, "", "", "", 5),
    ("/system.slice/slurmstepd.scope/system", UNIT, "", "", "", 2),
    ("/machine.slice/systemd-nspawn@web.service/payload", UNIT, "", "", "", 2),
    ("/batch/one", CGROUP, "", "", "", 2),
    ("/a/b/c/d/e/f", CGROUP, "", "", "", 4),
    ("/slurm/uid_1000", CGROUP, "", "", "", 2),
    ("/system.slice/slurmstepd.scope/sFNDM35NQ39RI0", UNIT, "", "", "", 2),  # I is no base 32
    ("/pbs_jobs.service/jobid", UNIT, "", "", "", 1),
    ("/12345.pbs", CGROUP, "", "", "", 1),
    ("/htcondor/master", CGROUP, "", "", "", 2),
    ("/batch/job_42", CGROUP, "", "", "", 2),
    ("/kubepods.slice/kubepods-burstable.slice", CGROUP, "", "", "", 2),
    (f"/kubepods/burstable/pod{UID[:-1]}", CGROUP, "", "", "", 3),
]  # fmt: skip


@pytest.mark.parametrize(("path", "kind", "uid", "container", "qos", "depth"), SHAPES)
def test_a_path_names_its_owner(
    path: str, kind: SubjectKind, uid: str, container: str, qos: str, depth: int
) -> None:
    found = subject_path(path)
    assert found is not None
    parts = [part for part in path.split("/") if part not in ("", "..")]
    assert found.root == "/" + "/".join(parts[:depth])
    assert (found.kind, found.uid, found.container, found.qos) == (kind, uid, container, qos)


def test_a_child_of_a_divided_cgroup_is_a_subject_and_the_rest_is_the_units() -> None:
    manager = "/system.slice/grid.service"
    for path, divided, root in (
        (f"{manager}/job-1/task", {manager}, f"{manager}/job-1"),
        (manager, {manager}, manager),
        (f"{manager}/supervisor", {manager}, manager),
        (f"{manager}/jobs/1/task", {f"{manager}/jobs"}, f"{manager}/jobs/1"),
        (f"{manager}/daemon", {f"{manager}/jobs"}, manager),
        (f"{manager}/job-1", {"/system.slice/other.service"}, manager),
        (f"{manager}/job-1/inner.service", {manager}, f"{manager}/job-1/inner.service"),
    ):
        found = fallback_path(path, divided)
        assert found is not None
        assert found.root == root
        assert found.kind is (UNIT if root.endswith(".service") else CGROUP)


@pytest.mark.parametrize(
    "path",
    ["/", "/init.scope", "/system.slice/dev-hugepages.mount", "/system.slice/dev-sda2.swap",
     f"/system.slice/crio-conmon-{ID}.scope", f"/machine.slice/libpod-conmon-{ID}.scope"],
)  # fmt: skip
def test_mounts_overseers_and_the_root_are_nobodys(path: str) -> None:
    assert subject_path(path) is None


def test_all_pods_on_the_way_are_known_the_outermost_first() -> None:
    path = f"/kubepods/burstable/pod{OTHER}/{ID2}/docker/{ID}/kubepods/besteffort/pod{UID}/{ID}"
    assert [(workload.uid, workload.container) for workload in workload_paths(path)] == [
        (OTHER, ID2),
        (UID, ID),
    ]


def test_a_process_is_placed_by_the_hierarchy_of_its_cpu_time() -> None:
    pod = f"/kubepods/burstable/pod{UID}/{ID}"
    hybrid = f"12:devices:/user.slice\n4:cpu,cpuacct:{pod}\n0::/system.slice/containerd.service\n"
    assert process_cgroups(hybrid)[0] == pod
    assert process_cgroups(f"0::{pod}\n") == [pod]
    assert process_cgroups(f"0::{pod} (deleted)\n") == [pod]
    assert process_cgroups("0::/a\u2028b\x85c\n") == ["/a\u2028b\x85c"]
    assert process_cgroups("garbage\n1:name=systemd:/a\n") == ["/a"]
    colons = f"/system.slice/containerd.service/kubepods-pod{SLICE}.slice:cri-containerd:{ID}"
    assert process_cgroups(f"3:cpuacct,cpu:{colons}\n")[0] == colons


_parts = st.one_of(
    st.sampled_from([f"pod{UID}", ID, f"docker-{ID}.scope", "kubepods", "burstable", "..", "",
                     f"kubepods-pod{SLICE}.slice", "job_1", "slurm", "lxc", "a.service",
                     "pbs_jobs.service", "7.server", "htcondor", "a_slot1_2@b.slice", "lsf",
                     "job.1.2", "s5K1KKYAYG5D00", "supervisor", "x (deleted)"]),
    st.text(st.characters(exclude_characters="/"), max_size=20),
)  # fmt: skip


@examples(300)
@given(st.lists(_parts, max_size=8))
def test_any_path_has_no_more_than_a_single_owner_above_it(parts: list[str]) -> None:
    path = "/" + "/".join(parts)
    found = subject_path(path)
    for workload in (*workload_paths(path), *([found] if found else [])):
        clean = "/" + "/".join(p for p in path.split("/") if p not in ("", ".", ".."))
        assert clean == workload.root or clean.startswith(workload.root + "/")
        again = subject_path(workload.root)
        assert again is not None
        assert (again.kind, again.root, again.uid) == (workload.kind, workload.root, workload.uid)


@examples(200)
@given(st.text(max_size=200))
def test_any_text_of_a_process_is_read(text: str) -> None:
    for path in process_cgroups(text):
        subject_path(path)
