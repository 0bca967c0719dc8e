"""Source: traffic of subjects that have a network namespace of their own.

``/proc/PID/net`` shows the namespace of the process, so one process of a subject is enough:
``dev`` gives the interfaces without ``lo``, ``snmp`` gives TCP.  A subject that shares the
namespace of the host, or of an earlier subject, has no counters here.  An open file keeps a
namespace alive; therefore the files of a process are closed as soon as it ends.

A bond or a VLAN repeats the traffic of the interfaces below it, so only these are added.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from pathlib import Path

from reveal_collector.kernel_interfaces.errors import LayoutChanged, Unsupported
from reveal_collector.readers.netdev import FIELDS, SEPARATED, interfaces
from reveal_collector.readers.source import Roots
from reveal_collector.readers.sysfs_attributes import entries
from reveal_collector.readers.textfile import OpenFile, channel, decoded
from reveal_collector.subjects.cgroup_files import cpu_root
from reveal_collector.subjects.cgroup_walk import subtree
from reveal_collector.subjects.read_rotation import ReadRotation
from reveal_collector.subjects.tracker import CgroupSubject, SubjectTracker
from reveal_contract.channels import Channel
from reveal_contract.metric import Lane
from reveal_contract.subjects import SubjectKind

_KINDS = (SubjectKind.POD, SubjectKind.CONTAINER, SubjectKind.JOB)
_DEV = tuple(f"network.subject.{name}" for name in
             ("rx_bytes", "tx_bytes", "rx_packets", "tx_packets", "drops"))  # fmt: skip
_TCP = ("network.subject.out_segs", "network.subject.retrans_segs")
METRICS = (*_DEV, *_TCP)
_pick_summed = itemgetter(
    *map(
        FIELDS.index,
        ("rx_bytes", "tx_bytes", "rx_packets", "tx_packets", "rx_drop", "tx_drop"),
    )
)
# A search costs 0.1 ms.  The time to the next search of a subject is a quarter of the time since
# its first one, up to a limit.
_INTERVAL_DIVISOR = 4
_MAX_INTERVAL_S = 30
_NEVER = sys.maxsize
_MAX_TRIED = 3  # processes of a subject

Traffic = tuple[int, ...]  # one number for each metric of ``_DEV``


def parse_dev(data: bytes) -> dict[str, Traffic]:
    """Return bytes in and out, packets in and out, and drops of each interface in net/dev but lo.

    Raises ``ValueError`` for another text: its sums would miss what cannot be read.
    """
    lines = list(interfaces(decoded(SEPARATED.apply(data))))
    if not lines or not all(line.values for line in lines):
        raise ValueError("net/dev has no interface, or one without its numbers")
    return {
        os.fsdecode(os.fsencode(line.name)): _traffic(line.values)
        for line in lines
        if line.name != "lo"
    }


def _traffic(values: Sequence[str]) -> Traffic:
    *counted, rx_drop, tx_drop = map(int, _pick_summed(values))
    return (*counted, rx_drop + tx_drop)


def upper_interfaces(net: Path) -> frozenset[str]:
    """Return the bonds and VLANs in ``/proc/PID/net``: interfaces below them count the same."""
    bonds, vlans = entries(net / "bonding", net / "vlan")
    return frozenset(bonds).union(vlans).difference({"config"})  # the list of all VLANs


class TrafficTotals:
    """Running sums over the interfaces of one namespace, which come and go.

    An interface that comes later (a VF that was used elsewhere) adds what it counts from then on.
    """

    def __init__(self, net: Path) -> None:
        self._net = net
        self._upper: frozenset[str] = frozenset()
        self._last: Mapping[str, Traffic] | None = None
        self._totals: Traffic = (0,) * len(_DEV)

    def update(self, found: Mapping[str, Traffic]) -> Traffic:
        """Return the sums after these counters of each interface."""
        last = self._last
        if last is None or last.keys() != found.keys():
            self._upper = upper_interfaces(self._net)
        for name, now in found.items():
            before = (0,) * len(now) if last is None else last.get(name, now)
            if name not in self._upper:
                self._totals = tuple(
                    total + max(0, new - old)
                    for total, new, old in zip(self._totals, now, before, strict=True)
                )
        self._last = found
        return self._totals


def parse_tcp(data: bytes) -> tuple[int | None, int | None]:
    """Return OutSegs and RetransSegs of the two ``Tcp:`` lines of net/snmp."""
    lines = [line.split() for line in data.splitlines() if line.startswith(b"Tcp:")]
    if len(lines) != 2 or len(lines[0]) != len(lines[1]):
        return None, None
    found = dict(zip(*lines, strict=True))
    sent, resent = found.get(b"OutSegs"), found.get(b"RetransSegs")
    return None if sent is None else int(sent), None if resent is None else int(resent)


class _NetworkNamespace:
    """The files of a subject's network namespace, read through one process in it.

    ``id`` is "" while no process is known.
    """

    def __init__(self, proc: Path) -> None:
        self.id = ""
        self.values: list[int | None] = [None] * len(METRICS)
        self._proc = proc
        self._files: list[OpenFile] = []
        self._traffic = TrafficTotals(proc)
        self._texts: tuple[bytes, ...] = ()  # that the values are of

    def enter(self, pid: str, namespace: str) -> bool:
        """Open the files of a process; return whether they could be read."""
        names = ("stat", "net/dev", "net/snmp")
        self._files = [OpenFile(self._proc / pid / name) for name in names]
        self._traffic = TrafficTotals(self._proc / pid / "net")
        try:
            for file in self._files:
                file.open()
            self.id = namespace
            self.read()
        except Unsupported:
            self.leave()
        return bool(self.id)

    def read(self) -> None:
        """Update ``values``; leave the namespace if the process has ended."""
        stat, dev, snmp = self._files
        try:
            if not stat.read():
                raise ProcessLookupError
            texts = dev.read(), snmp.read()
            if texts != self._texts:  # most subjects are silent in most seconds
                self._texts = ()
                traffic = self._traffic.update(parse_dev(texts[0]))
                self.values = [*traffic, *parse_tcp(texts[1])]
                self._texts = texts
        except OSError:
            self.leave()
        except ValueError:
            self.values = [None] * len(METRICS)

    def leave(self) -> None:
        """Close the files: the kernel can free the namespace."""
        for file in self._files:
            file.close()
        self._files, self._texts, self.id = [], (), ""
        self.values = [None] * len(METRICS)


@dataclass
class _NamespaceSearch:
    """Schedule of the searches for a namespace of one subject, in seconds of the rotation.

    The search never stops: a container runtime moves a process into its cgroup first and into
    its network namespace later, and a pod may start its first process late.
    """

    since: int
    due: int = 0

    def postpone(self, second: int) -> None:
        """Schedule the next search after one that found nothing."""
        self.due = second + min(max(1, (second - self.since) // _INTERVAL_DIVISOR), _MAX_INTERVAL_S)


class SubjectNetwork:
    """Traffic, drops and TCP retransmissions by subject, once a second."""

    name, lane = "subject-network", Lane.SLOW

    def __init__(self, roots: Roots, tracker: SubjectTracker) -> None:
        self.channels: tuple[Channel, ...] = ()
        self._proc, self._tracker = roots.proc, tracker
        self._tree = cpu_root(tracker.trees)
        self._host = ""
        self._subjects: tuple[CgroupSubject, ...] | None = None
        self._namespaces: dict[CgroupSubject, _NetworkNamespace] = {}
        self._rotation = ReadRotation(tracker)
        self._searches: dict[CgroupSubject, _NamespaceSearch] = {}
        self._next_search = 0  # second of the earliest search
        self._opened = False

    def open(self) -> None:
        if self._tree is None:
            raise Unsupported(
                "no cgroup hierarchy is mounted", "mount cgroup2, or set the path of its root"
            )
        # Process 1 may be protected more than others; a process that may inspect others usually
        # runs in the namespace of the host itself.
        self._host = self._namespace_of("1") or self._namespace_of("self")
        if not self._host:
            raise Unsupported(
                "this process is not permitted to read the network namespace of the host",
                "grant CAP_SYS_PTRACE, and run in the host's PID namespace",
            )
        self._tracker.start()
        self._opened = True
        self._update_subjects()

    def read(self) -> Sequence[int | None]:
        if self._update_subjects():
            raise LayoutChanged(self.name)
        self._rotation.advance()
        row: list[int | None] = []
        for position, (subject, namespace) in enumerate(self._namespaces.items()):
            if namespace.id and self._rotation.is_due(position, subject):
                before = namespace.values
                namespace.read()
                self._rotation.note(subject, changed=namespace.values != before)
                if not namespace.id:
                    self._next_search = 0  # its process ended: search for another one at once
            row += namespace.values
        return row

    def close(self) -> None:
        if self._opened:
            self._opened = False
            self._tracker.stop()
        for namespace in self._namespaces.values():
            namespace.leave()
        self._namespaces, self._subjects, self.channels = {}, None, ()

    def _update_subjects(self) -> bool:
        """Follow the current subjects; return whether the columns changed.

        A subject has columns from its first search that finds a namespace until it is gone.  It
        keeps them, empty, while the process that was read has ended and no other is found.
        """
        current = self._tracker.current
        if current is self._subjects and self._rotation.second < self._next_search:
            return False
        self._subjects = current
        for subject in [known for known in self._namespaces if known not in current]:
            self._namespaces.pop(subject).leave()
        for subject in current:
            self._search_namespace(subject)
        self._namespaces = {  # an order that does not depend on when each was found
            subject: self._namespaces[subject] for subject in current if subject in self._namespaces
        }
        self._searches = {
            subject: self._searches[subject] for subject in current if subject in self._searches
        }
        self._next_search = min((search.due for search in self._searches.values()), default=_NEVER)
        return self._update_channels()

    def _update_channels(self) -> bool:
        channels = tuple(
            channel(metric, subject.instance) for subject in self._namespaces for metric in METRICS
        )
        changed, self.channels = channels != self.channels, channels
        return changed

    def _search_namespace(self, subject: CgroupSubject) -> None:
        """Find a process for a subject without one, if a search is due."""
        if subject.kind not in _KINDS:  # units and plain cgroups run in the host's namespace
            return
        namespace = self._namespaces.get(subject) or _NetworkNamespace(self._proc)
        if not namespace.id and self._enter_namespace(subject, namespace):
            self._namespaces[subject] = namespace

    def _enter_namespace(self, subject: CgroupSubject, namespace: _NetworkNamespace) -> bool:
        """Enter the namespace of a subject; return ``False`` if it has none of its own."""
        second = self._rotation.second
        search = self._searches.setdefault(subject, _NamespaceSearch(second))
        if second < search.due:
            return False
        taken = {self._host, *(other.id for other in self._namespaces.values() if other.id)}
        for pid in self._processes_of(subject):
            found = self._namespace_of(pid)
            if found and found not in taken and namespace.enter(pid, found):
                del self._searches[subject]
                return True
        search.postpone(second)
        return False

    def _processes_of(self, subject: CgroupSubject) -> list[str]:
        """Return one process of each cgroup of a subject, at most ``_MAX_TRIED``."""
        if self._tree is None:
            return []
        found = []
        for cgroup in subtree(self._tree, subject.path):
            try:
                with (cgroup / "cgroup.procs").open("rb") as file:
                    pid = file.readline().strip().decode()
            except OSError:
                continue
            if pid.isdigit() and pid != "0":  # 0: a process outside of this PID namespace
                found.append(pid)
            if len(found) == _MAX_TRIED:
                break
        return found

    def _namespace_of(self, pid: str) -> str:
        """Return the id of a network namespace, ``net:[4026531840]``; "" if not readable."""
        try:
            return os.readlink(self._proc / pid / "ns/net")  # noqa: PTH115 - no Path is needed
        except OSError:
            return ""
