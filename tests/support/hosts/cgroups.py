"""Cgroup trees: version 1, version 2 or both, and pods as each runtime and driver lays them out.

File formats: cgroup-v1/*.rst and cgroup-v2.rst of the kernel; paths: the kubelet's cgroup
managers, containerd, CRI-O and cri-dockerd.  Every file the collector reads is there.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from support.hosts.procfs import add_process
from support.hosts.tree import Moment, Moving, Tree, rising

V1, V2, HYBRID = "v1", "v2", "hybrid"
_CONTROLLERS = ("cpu", "cpuacct", "memory", "blkio", "pids")
HOST_NETWORK = 4_026_531_840
_QOS_SLICE = {"Guaranteed": "", "Burstable": "burstable", "BestEffort": "besteffort"}


@dataclass(frozen=True)
class Container:
    """What runs in one container: ``cpu`` CPUs, ``memory`` bytes; ``pid`` its first process."""

    name: str
    pid: int
    cpu: float = 0.1
    memory: int = 64 << 20

    def id(self, uid: str) -> str:
        return hashlib.sha256(f"{uid}/{self.name}".encode()).hexdigest()


@dataclass(frozen=True)
class PodSpec:
    """A pod; ``static`` ones have a hash for their uid and a mirror in the API."""

    name: str
    uid: str
    containers: tuple[Container, ...]
    namespace: str = "default"
    qos: str = "Burstable"
    owner: tuple[str, ...] = ()  # kind and name, or nothing
    host_network: bool = False
    netns: int = 0
    rx_rate: int = 100_000
    static: bool = False


@dataclass(frozen=True)
class Layout:
    """How paths look: who runs containers under which driver, inside of what."""

    version: str = V2
    runtime: str = "containerd"  # "crio", "docker"
    driver: str = "systemd"  # "cgroupfs"
    nested: str = ""  # the cgroup of a kind node, "/system.slice/docker-<id>.scope"

    def pod(self, pod: PodSpec) -> str:
        level = _QOS_SLICE[pod.qos]
        if self.driver == "cgroupfs":
            parts = [self.nested, "/kubelet" if self.nested else "", "/kubepods"]
            return "".join([*parts, f"/{level}" if level else "", f"/pod{pod.uid}"])
        first = "kubelet-kubepods" if self.nested else "kubepods"
        above = f"{self.nested}/kubelet.slice" if self.nested else ""
        slices = [first, *([f"{first}-{level}"] if level else [])]
        slices.append(f"{slices[-1]}-pod{pod.uid.replace('-', '_')}")
        return above + "".join(f"/{name}.slice" for name in slices)

    def container(self, pod: PodSpec, identity: str) -> str:
        if self.driver == "cgroupfs":
            name = f"crio-{identity}" if self.runtime == "crio" else identity
        else:
            prefix = {"containerd": "cri-containerd", "crio": "crio", "docker": "docker"}
            name = f"{prefix[self.runtime]}-{identity}.scope"
        return f"{self.pod(pod)}/{name}"

    def processes(self, pod: PodSpec, identity: str) -> str:
        """Where the processes are: CRI-O has a cgroup inside of the container's."""
        path = self.container(pod, identity)
        inside = self.runtime == "crio" and self.version == V2
        return f"{path}/container" if inside else path


@dataclass
class Use:
    """What a cgroup used; of a parent the sum of its children's."""

    cpu: float = 0.0
    memory: int = 0
    pids: tuple[int, ...] = ()
    tasks: int = 0

    def add(self, other: Use) -> None:
        self.cpu += other.cpu
        self.memory += other.memory
        self.tasks += other.tasks


def add_cgroups(
    tree: Tree,
    layout: Layout,
    pods: Sequence[PodSpec] = (),
    others: dict[str, tuple[float, int]] | None = None,
) -> None:
    """Hierarchies, pods with their processes, and other cgroups as path -> (CPUs, pid)."""
    uses: dict[str, Use] = {}
    for pod in pods:
        for container in pod.containers:
            path = layout.processes(pod, container.id(pod.uid))
            _use(uses, path, Use(container.cpu, container.memory, (container.pid,), 4))
            _add_member(tree, layout, path, container.pid, container.name, container.cpu)
            _add_network(tree, container.pid, pod)
        sandbox = layout.container(pod, sandbox_id(pod))
        _use(uses, sandbox, Use(0.0, 300_000, (pod.containers[0].pid + 1,), 1))
        _add_member(tree, layout, sandbox, pod.containers[0].pid + 1, "pause", 0.0)
        _add_network(tree, pod.containers[0].pid + 1, pod)
    for path, (cpu, pid) in (others or {}).items():
        _use(uses, path, Use(cpu, 32 << 20, (pid,), 2))
        _add_member(tree, layout, path, pid, path.rpartition("/")[2][:15], cpu)
        _add_network(tree, pid, None)
    _add_network(tree, 1, None)
    if layout.version in (V1, HYBRID):
        _add_roots_1(tree)
    if layout.version in (V2, HYBRID):
        _add_root_2(tree, layout.version)
    for path, use in uses.items():
        if layout.version in (V1, HYBRID):
            add_cgroup_1(tree, path, use)
        if layout.version == V2:
            add_cgroup_2(tree, f"cgroup{path}", use)
        if layout.version == HYBRID:  # no controllers there: processes and pressure only
            _add_core_2(tree, f"cgroup/unified{path}", use)


def sandbox_id(pod: PodSpec) -> str:
    return hashlib.sha256(f"{pod.uid}/sandbox".encode()).hexdigest()


def pod_list(pods: Sequence[PodSpec], node: str, runtime: str = "containerd") -> dict[str, Any]:
    """What ``kubectl get pods -o json`` says of them."""
    return {"apiVersion": "v1", "kind": "List", "items": [
        pod_object(pod, node, runtime) for pod in pods
    ]}  # fmt: skip


def pod_object(pod: PodSpec, node: str, runtime: str = "containerd") -> dict[str, Any]:
    prefix = {"containerd": "containerd", "crio": "cri-o", "docker": "docker"}[runtime]
    meta: dict[str, Any] = {"name": pod.name, "namespace": pod.namespace, "uid": pod.uid}
    if pod.static:
        meta["annotations"] = {"kubernetes.io/config.hash": pod.uid}
        meta["uid"] = "11111111-2222-4333-8444-" + pod.uid[:12]
    if pod.owner:
        kind, name = pod.owner
        meta["ownerReferences"] = [{"kind": kind, "name": name, "controller": True, "uid": "o"}]
    statuses = [
        {"name": each.name, "containerID": f"{prefix}://{each.id(pod.uid)}", "ready": True}
        for each in pod.containers
    ]
    return {
        "metadata": meta,
        "spec": {"nodeName": node, "hostNetwork": pod.host_network,
                 "containers": [{"name": each.name} for each in pod.containers]},
        "status": {"phase": "Running", "qosClass": pod.qos, "containerStatuses": statuses},
    }  # fmt: skip


def add_cgroup_1(tree: Tree, path: str, use: Use) -> None:
    """One cgroup in every hierarchy of version 1."""
    procs = "".join(f"{pid}\n" for pid in use.pids)
    for controller in _CONTROLLERS:
        tree.write(f"cgroup/{controller}{path}/cgroup.procs", procs)
    tree.write(f"cgroup/cpuacct{path}/cpuacct.usage", rising(use.cpu * 1e9))
    tree.write(f"cgroup/cpu{path}/cpu.stat", _throttling("throttled_time", 1.0))
    memory = f"cgroup/memory{path}"
    tree.write(f"{memory}/memory.usage_in_bytes", use.memory)
    tree.write(f"{memory}/memory.stat", _memory_1(use))
    tree.write(f"{memory}/memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 0\n")
    tree.write(f"{memory}/memory.failcnt", 0)
    for name, rate in (("io_service_bytes", 1e6), ("io_serviced", 20)):
        text = _lines_of_disks(use.cpu * rate)
        tree.write(f"cgroup/blkio{path}/blkio.throttle.{name}", text)
        tree.write(f"cgroup/blkio{path}/blkio.throttle.{name}_recursive", text)
    tree.write(f"cgroup/pids{path}/pids.current", use.tasks)


def add_cgroup_2(tree: Tree, folder: str, use: Use) -> None:
    """One cgroup of version 2 with all controllers, at a folder below the tree's root."""
    _add_core_2(tree, folder, use)
    throttled = _throttling("throttled_usec", 1e-3)
    tree.write(f"{folder}/cpu.stat", lambda now: (
        f"usage_usec {now.count(use.cpu * 1e6)}\nuser_usec {now.count(use.cpu * 7e5)}\n"
        f"system_usec {now.count(use.cpu * 3e5)}\n{throttled(now)}"
    ))  # fmt: skip
    tree.write(f"{folder}/memory.current", use.memory)
    tree.write(f"{folder}/memory.stat", lambda now: (
        f"anon {use.memory // 2}\nfile {use.memory // 4}\nworkingset_refault_anon 0\n"
        f"workingset_refault_file {now.count(use.cpu)}\npgscan {now.count(use.cpu * 2)}\n"
        f"pgfault {now.count(use.cpu * 500)}\npgmajfault {now.count(use.cpu * 2)}\n"
    ))  # fmt: skip
    tree.write(f"{folder}/memory.events", "low 0\nhigh 0\nmax 0\noom 0\noom_kill 0\n")
    tree.write(f"{folder}/io.stat", lambda now: (
        f"8:0 rbytes={now.count(use.cpu * 1e6)} wbytes={now.count(use.cpu * 2e6)} "
        f"rios={now.count(use.cpu * 20)} wios={now.count(use.cpu * 40)} dbytes=0 dios=0\n"
    ))  # fmt: skip
    tree.write(f"{folder}/pids.current", use.tasks)


def _use(uses: dict[str, Use], path: str, use: Use) -> None:
    uses.setdefault(path, Use()).pids += use.pids
    while path:
        uses.setdefault(path, Use()).add(use)
        path = path.rpartition("/")[0]


def _add_member(
    tree: Tree, layout: Layout, path: str, pid: int, name: str, cpu: float
) -> None:  # fmt: skip
    add_process(tree, pid, name, cpu)
    first = "".join(f"{index}:{name}:{path}\n" for index, name in enumerate(_CONTROLLERS, 2))
    second = f"0::{path}\n"
    text = {V1: first, V2: second, HYBRID: first + second}[layout.version]
    tree.write(f"proc/{pid}/cgroup", text)


def _add_network(tree: Tree, pid: int, pod: PodSpec | None) -> None:
    own = pod is not None and not pod.host_network
    number = pod.netns if pod is not None and own else HOST_NETWORK
    tree.link(f"proc/{pid}/ns/net", f"net:[{number}]")
    if pod is None or not own:
        return
    rate = pod.rx_rate

    def dev(now: Moment) -> str:
        got, sent = now.count(rate, 1000), now.count(rate / 2, 500)
        head = "Inter-|   Receive                                                |  Transmit\n"
        names = " face |bytes    packets errs drop fifo frame compressed multicast|bytes    "
        return (
            f"{head}{names}packets errs drop fifo colls carrier compressed\n"
            f"    lo: 99 1 0 0 0 0 0 0 99 1 0 0 0 0 0 0\n"
            f"  eth0: {got} {got // 1000} 0 2 0 0 0 0 {sent} {sent // 1000} 0 1 0 0 0 0\n"
        )

    def snmp(now: Moment) -> str:
        return (
            "Tcp: RtoAlgorithm RtoMin RtoMax MaxConn OutSegs RetransSegs\n"
            f"Tcp: 1 200 120000 -1 {now.count(rate / 1000, 7)} {now.count(rate / 1e5, 3)}\n"
        )

    tree.write(f"proc/{pid}/net/dev", dev)
    tree.write(f"proc/{pid}/net/snmp", snmp)


def _add_roots_1(tree: Tree) -> None:
    for controller in _CONTROLLERS:
        tree.write(f"cgroup/{controller}/cgroup.procs", "1\n")


def _add_root_2(tree: Tree, version: str) -> None:
    root = "cgroup/unified" if version == HYBRID else "cgroup"
    controllers = "" if version == HYBRID else "cpuset cpu io memory hugetlb pids rdma"
    tree.write(f"{root}/cgroup.controllers", f"{controllers}\n")
    tree.write(f"{root}/cgroup.procs", "1\n")


def _add_core_2(tree: Tree, folder: str, use: Use) -> None:
    tree.write(f"{folder}/cgroup.procs", "".join(f"{pid}\n" for pid in use.pids))
    tree.write(f"{folder}/cgroup.events", f"populated {int(use.tasks > 0)}\nfrozen 0\n")
    for name, share in (("cpu", 20_000.0), ("memory", 1_000.0), ("io", 5_000.0)):
        tree.write(f"{folder}/{name}.pressure", _pressure(use.cpu * share))


def _throttling(time: str, scale: float) -> Callable[[Moment], str]:
    return lambda now: (
        f"nr_periods {now.count(10)}\nnr_throttled {now.count(1)}\n"
        f"{time} {now.count(1e6 * scale)}\n"
    )


def _memory_1(use: Use) -> Moving:
    return lambda now: (
        f"cache 0\nrss 0\ntotal_cache {use.memory // 4}\ntotal_rss {use.memory // 2}\n"
        f"total_pgfault {now.count(use.cpu * 500)}\ntotal_pgmajfault {now.count(use.cpu * 2)}\n"
        f"total_workingset_refault_anon 0\n"
        f"total_workingset_refault_file {now.count(use.cpu)}\n"
    )


def _lines_of_disks(rate: float) -> Moving:
    return lambda now: (
        f"8:0 Read {now.count(rate)}\n8:0 Write {now.count(2 * rate)}\n"
        f"8:0 Total {now.count(3 * rate)}\nTotal {now.count(3 * rate)}\n"
    )


def _pressure(rate: float) -> Moving:
    return lambda now: (
        f"some avg10=0.00 avg60=0.00 avg300=0.00 total={now.count(rate)}\n"
        f"full avg10=0.00 avg60=0.00 avg300=0.00 total={now.count(rate / 2)}\n"
    )
