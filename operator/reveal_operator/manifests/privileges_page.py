"""Writes ``docs/reference/privileges.md`` from the table: each right, its reason, its loss.

Run ``python -m reveal_operator.manifests.privileges_page``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby

from reveal_contract import catalogue
from reveal_operator.manifests.privileges import NEEDS, Need, NeedKind, needs_of
from reveal_operator.profile import CollectorSpec, SourcesSpec

_INTRO = """\
# What a collector may do on its node, and why

<!-- made by `python -m reveal_operator.manifests.privileges_page`; a test holds it current -->

The operator builds the pod of a collector from a table with one row for each right
(`operator/reveal_operator/manifests/privileges.py`). This page is that table.

For all values of `collector.privilege`, the root file system of the container is read-only. Paths
of the host are mounted read-only, from Kubernetes 1.30 on with everything that is mounted below
them, if the runtime supports this. Only one folder is writable: an `emptyDir` of 1 MiB for the
files of the probes.

The analyzer needs none of these rights. It runs as user 65532 (not root), has no capabilities, and
keeps the default confinement of the runtime, so it fits Pod Security `restricted`. Collectors use
namespaces of the host, so their namespace needs Pod Security `privileged`.

- `privilege: Privileged` (the default) is a privileged container: all capabilities, all devices, no
  confinement. Nothing is lost.
- `privilege: Capabilities` is a container with only the capabilities below and without devices. It
  cannot gain more rights (`allowPrivilegeEscalation: false`). Compared with `Privileged`, it loses:
  - perf events on kernels before 5.8, which have no `CAP_PERFMON`;
  - NVIDIA GPUs where the container toolkit gives them to privileged containers only;
  - profiling values of GPUs (`gpuProfiling`) where the driver gives them to administrators only.

  A node whose SELinux policy has no type `spc_t` (Flatcar) does not start such a container.
- `privilege: Restricted` has only `SYS_NICE` of the capabilities below, and the seccomp, AppArmor
  and SELinux confinement of the runtime. The sources `filesystems`, `ledger`, and those of perf
  events are left out, and the losses of these rights in the tables below apply. There is no ledger
  from times of threads either, as in any profile that leaves out `ledger`.

**Privileged and Capabilities are equal to root on the node**: with `SYS_PTRACE` and user 0 in the
host's PID namespace, `/proc/PID/root` is the file system of the host, `BPF` with `PERFMON` reads
the memory of the kernel, and since Linux 6.13 `PERFMON` alone reads `/proc/PID/environ` and
`/proc/PID/maps`. Restricted does none of these.

If a profile leaves out all sources that need a right, the collector does not get this right. For
example, without the sources of `PERFMON` in the table below (`sources.exclude`), the collector has
no `CAP_PERFMON`, and it runs under the seccomp profile of the runtime
(`examples/least-privilege.yaml`).

"""
_NOT_NEEDED = (
    (
        "`SYS_ADMIN`",
        "the network values of a pod are in `/proc/PID/net` of one of its processes, so the"
        " collector enters no namespace",
    ),
    (
        "`/dev/cpu`, `SYS_RAWIO`",
        "the kernel counts APERF, MPERF and SMIs as `msr` events, and energy as `power` events"
        " or in powercap",
    ),
    ("`NET_ADMIN`", "sock_diag and ethtool give statistics to every process in the namespace"),
    (
        "the host's `/`",
        "statvfs on `/proc/1/root` gives the free space of its file systems. The only file"
        " that is opened there is `etc/os-release`",
    ),
    (
        "`/dev`, `hostIPC`, writable paths, the container runtime's socket",
        "the API has the pods, and the cgroup tree has the containers",
    ),
)
_EXTRA = """
A profile can add paths of the host, read-only, for your own sources: `extraHostPaths`.

Some clusters (GKE) allow pods of the class `system-node-critical` only in `kube-system`. Give
the namespace a ResourceQuota for that class, or set another `priorityClassName` in the profile
(`""`: none).
"""
_KINDS = {
    NeedKind.NAMESPACE: "Namespaces of the host",
    NeedKind.USER: "User",
    NeedKind.CAPABILITY: "Capabilities",
    NeedKind.MOUNT: "Paths of the host",
    NeedKind.UNCONFINED: "Confinement that is turned off",
    NeedKind.VARIABLE: "Environment",
}


def page() -> str:
    """Return the page."""
    tables = "\n".join(_section(kind, title) for kind, title in _KINDS.items())
    return f"{_INTRO}{tables}\n{_least()}\n{_lost()}\n{_not_needed()}{_EXTRA}"


def _section(kind: NeedKind, title: str) -> str:
    rows = [_row(need) for need in NEEDS if need.kind is kind]
    head = ["| what | why | lost without it | sources |", "|---|---|---|---|"]
    return "\n".join([f"## {title}", "", *head, *rows, ""])


def _row(need: Need) -> str:
    sources = [f"`{name}`" for name in need.gone] + [f"`{name}` in part" for name in need.less]
    cells = (f"`{need.what}`", need.why, need.lost, ", ".join(sources) or "all")
    return f"| {' | '.join(cells)} |"


def _least() -> str:
    """Return what is left for a profile that reads only files of the kernel."""
    sources = SourcesSpec(include=("stat", "meminfo", "psi", "netdev", "diskstats", "cgroups"))
    least = [f"`{need.what}`" for need in needs_of(CollectorSpec(sources=sources))]
    return "\n".join(
        [
            "## The smallest set of rights",
            "",
            f"With `sources.include: [{', '.join(sources.include)}]` and `privilege: Capabilities`",
            f"these rights are left: {', '.join(least)}.",
            "",
        ]
    )


def _lost() -> str:
    rows = [
        f"| `{need.what}` | `{source}` | {_metrics(source)} |"
        for need in NEEDS
        if need.kind is NeedKind.CAPABILITY
        for source in need.gone
    ]
    head = ["| without | source | metrics |", "|---|---|---|"]
    return "\n".join(["## Metrics that are lost completely", "", *head, *rows, ""])


def _not_needed() -> str:
    rows = [f"| {what} | {why} |" for what, why in _NOT_NEEDED]
    head = ["| | why not |", "|---|---|"]
    return "\n".join(["## What a collector does not need", "", *head, *rows, ""])


def _metrics(source: str) -> str:
    """Return the metrics of a source, a group of them as one: ``cpu.perf.*`` (7)."""
    names = sorted(row.name for row in catalogue.rows() if row.source == source)
    return ", ".join(_families(names))


def _families(names: Iterable[str]) -> Iterator[str]:
    for family, members in groupby(names, key=lambda name: name.rpartition(".")[0]):
        found = list(members)
        yield f"`{found[0]}`" if len(found) == 1 else f"`{family}.*` ({len(found)})"


if __name__ == "__main__":
    print(page(), end="")  # noqa: T201 - the page
