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

The operator builds the collector's pod from a table, a row a need
(`operator/reveal_operator/manifests/privileges.py`); this page is that table. Whatever
`collector.privilege` says, the container's own file system is read-only, everything of the host is
mounted read-only (with all that is mounted below it, from Kubernetes 1.30 on and where the runtime
can), and the one place that can be written to is an `emptyDir` of 1 MiB for the probes' files.
The analyzer needs nothing of this: nobody's user, no capability, the runtime's confinement; it fits
Pod Security `restricted`. Collectors need a namespace that is `privileged`, as every pod in the
host's namespaces does.

- `privilege: Privileged` (the default) is a privileged container: all capabilities, all devices, no
  confinement. Nothing is lost.
- `privilege: Capabilities` is a container with the capabilities below and no other, without
  devices, which cannot gain more (`allowPrivilegeEscalation: false`). Lost against `Privileged`:
  perf events on kernels before 5.8 (no `CAP_PERFMON` yet); NVIDIA GPUs where the container toolkit
  hands them to privileged containers only, and their profiling figures (`gpuProfiling`) where the
  driver keeps those for administrators. A node whose SELinux policy knows no `spc_t` (Flatcar's)
  does not start such a container.

A need goes when the profile leaves out all sources it is there for: `sources.exclude` with the
sources of `PERFMON` takes the capability away, and gives the runtime's seccomp profile back
(`examples/least-privilege.yaml`).

"""
_NOT_NEEDED = (
    (
        "`SYS_ADMIN`",
        "network by pod is read from `/proc/PID/net` of one of its processes: no namespace is"
        " entered",
    ),
    (
        "`/dev/cpu`, `SYS_RAWIO`",
        "APERF, MPERF and SMIs are counted by the kernel's `msr` events, energy by `power` events"
        " or by powercap",
    ),
    ("`NET_ADMIN`", "sock_diag and ethtool tell statistics to everybody in the namespace"),
    ("`BPF`", "tracepoints are counted by perf events"),
    (
        "the host's `/`",
        "room on its file systems is asked through `/proc/1/root` (statvfs; no file is opened but"
        " `etc/os-release`)",
    ),
    (
        "`/dev`, `hostIPC`, writable paths, the container runtime's socket",
        "pods come from the API, containers from the cgroup tree",
    ),
)
_EXTRA = """
A profile can add paths of the host, read-only, for sources of a site's own: `extraHostPaths`.

Some clusters (GKE's) let pods of the class `system-node-critical` into `kube-system` only: give the
namespace a ResourceQuota for that class, or the profile another `priorityClassName` (`""`: none).
"""
_KINDS = {
    NeedKind.NAMESPACE: "Namespaces of the host",
    NeedKind.USER: "User",
    NeedKind.CAPABILITY: "Capabilities",
    NeedKind.MOUNT: "Paths of the host",
    NeedKind.UNCONFINED: "Confinement that is lifted",
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
            "## The least there can be",
            "",
            f"With `sources.include: [{', '.join(sources.include)}]` and `privilege: Capabilities`",
            f"these are left: {', '.join(least)}.",
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
    return "\n".join(["## Metrics that are lost whole", "", *head, *rows, ""])


def _not_needed() -> str:
    rows = [f"| {what} | {why} |" for what, why in _NOT_NEEDED]
    head = ["| | why not |", "|---|---|"]
    return "\n".join(["## What it does not ask for", "", *head, *rows, ""])


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
