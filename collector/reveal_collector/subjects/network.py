"""Source: what subjects with a network namespace of their own sent and received.

``/proc/PID/net`` shows the namespace of the process, so one process of a subject is enough:
``dev`` (interfaces but ``lo``) and ``snmp`` (TCP).  A subject whose namespace is the host's, or
that of a subject before it, has no counters of its own here.  An open file keeps a namespace
alive, so that of a process that is gone is closed at once.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from reveal_collector.kernel.errors import LayoutChanged, Unsupported
from reveal_collector.readers.netdev import FIELDS
from reveal_collector.readers.source import Roots
from reveal_collector.readers.textfile import OpenFile, channel
from reveal_collector.subjects.cgroup_files import cpu_root
from reveal_collector.subjects.cgroup_walk import within
from reveal_collector.subjects.read_rotation import Turns
from reveal_collector.subjects.tracker import Subject, SubjectTracker
from reveal_contract.channels import Channel
from reveal_contract.metric import Lane
from reveal_contract.subjects import SubjectKind

_KINDS = (SubjectKind.POD, SubjectKind.CONTAINER, SubjectKind.JOB)
_DEV = tuple(f"network.subject.{name}" for name in
             ("rx_bytes", "tx_bytes", "rx_packets", "tx_packets", "drops"))  # fmt: skip
_TCP = ("network.subject.out_segs", "network.subject.retrans_segs")
METRICS = (*_DEV, *_TCP)
_RX_BYTES, _RX_PACKETS, _RX_DROP, _TX_BYTES, _TX_PACKETS, _TX_DROP = (
    FIELDS.index(name)
    for name in ("rx_bytes", "rx_packets", "rx_drop", "tx_bytes", "tx_packets", "tx_drop")
)
# One without a namespace of its own is looked at again a quarter longer after it came than the
# last time, and at last so often: a look costs a tenth of a millisecond.
_PART_OF_AGE = 4
_RARELY_SECONDS = 30
_NEVER = sys.maxsize
_TRIED = 3  # processes of a subject


def parse_dev(data: bytes) -> tuple[int, int, int, int, int]:
    """Bytes and packets in and out, drops: the sum of all interfaces but ``lo`` (net/dev)."""
    total = [0] * len(FIELDS)
    for line in data.splitlines()[2:]:
        name, _, rest = line.partition(b":")
        values = rest.split()
        if name.strip() != b"lo" and len(values) == len(FIELDS):
            total = [one + int(value) for one, value in zip(total, values, strict=True)]
    return (
        total[_RX_BYTES], total[_TX_BYTES], total[_RX_PACKETS], total[_TX_PACKETS],
        total[_RX_DROP] + total[_TX_DROP],
    )  # fmt: skip


def parse_tcp(data: bytes) -> tuple[int | None, int | None]:
    """OutSegs and RetransSegs of the two ``Tcp:`` lines (net/snmp), by name."""
    lines = [line.split() for line in data.splitlines() if line.startswith(b"Tcp:")]
    if len(lines) != 2 or len(lines[0]) != len(lines[1]):
        return None, None
    found = dict(zip(*lines, strict=True))
    sent, again = found.get(b"OutSegs"), found.get(b"RetransSegs")
    return None if sent is None else int(sent), None if again is None else int(again)


class _Namespace:
    """The files of a subject's network namespace, read through one process that lives in it."""

    def __init__(self, proc: Path) -> None:
        self.id = ""
        self.values: list[int | None] = [None] * len(METRICS)
        self._proc = proc
        self._files: list[OpenFile] = []

    def enter(self, pid: str, namespace: str) -> bool:
        """Go on with this process; whether it could be read."""
        names = ("stat", "net/dev", "net/snmp")
        self._files = [OpenFile(self._proc / pid / name) for name in names]
        try:
            for file in self._files:
                file.open()
            self.id = namespace
            self.read()
        except Unsupported:
            self.leave()
        return bool(self.id)

    def read(self) -> None:
        """Renew ``values``; left as soon as the process is gone."""
        stat, dev, snmp = self._files
        try:
            if not stat.read():
                raise ProcessLookupError
            self.values = [*parse_dev(dev.read()), *parse_tcp(snmp.read())]
        except OSError:
            self.leave()
        except ValueError:
            self.values = [None] * len(METRICS)

    def leave(self) -> None:
        for file in self._files:
            file.close()
        self._files, self.id = [], ""
        self.values = [None] * len(METRICS)


@dataclass
class _Search:
    """Looks at a subject that has no namespace of its own yet.

    It is never given up: a container runtime puts a process into its cgroup first and into its
    network namespace then, and a pod may get its first process late.
    """

    since: int
    due: int = 0  # second of the next one

    def missed(self, second: int) -> None:
        self.due = second + min(max(1, (second - self.since) // _PART_OF_AGE), _RARELY_SECONDS)


class SubjectNetwork:
    """Traffic, drops and TCP retransmissions by subject, once a second."""

    name, lane = "subject-network", Lane.SLOW

    def __init__(self, roots: Roots, tracker: SubjectTracker) -> None:
        self.channels: tuple[Channel, ...] = ()
        self._proc, self._tracker = roots.proc, tracker
        self._tree = cpu_root(tracker.trees)
        self._host = ""
        self._seen: tuple[Subject, ...] | None = None
        self._spaces: dict[Subject, _Namespace] = {}
        self._turns = Turns(tracker)
        self._searches: dict[Subject, _Search] = {}
        self._next = 0  # second in which some search is due
        self._opened = False

    def open(self) -> None:
        if self._tree is None:
            raise Unsupported("no cgroup hierarchy is mounted", "mount cgroup2, or pass its root")
        # where process 1 is guarded more than others, who sees others is in the host's own
        self._host = self._namespace("1") or self._namespace("self")
        if not self._host:
            raise Unsupported(
                "the network namespace of the host may not be seen",
                "grant CAP_SYS_PTRACE, and run in the host's PID namespace",
            )
        self._tracker.start()
        self._opened = True
        self._follow()

    def read(self) -> Sequence[int | None]:
        if self._follow():
            raise LayoutChanged(self.name)
        self._turns.begin()
        row: list[int | None] = []
        for place, (subject, space) in enumerate(self._spaces.items()):
            if space.id and self._turns.due(place, subject):
                space.read()
                if not space.id:
                    self._next = 0
            row += space.values
        return row

    def close(self) -> None:
        if self._opened:
            self._opened = False
            self._tracker.stop()
        for space in self._spaces.values():
            space.leave()
        self._spaces, self._seen, self.channels = {}, None, ()

    def _follow(self) -> bool:
        """Whether the columns are others now: subjects came or went, or got a process."""
        current = self._tracker.current
        if current is self._seen and self._turns.second < self._next:
            return False
        self._seen = current
        for subject in [one for one in self._spaces if one not in current]:
            self._spaces.pop(subject).leave()
        for subject in current:
            space = self._spaces.get(subject) or _Namespace(self._proc)
            if subject.kind in _KINDS and not space.id and self._enter(subject, space):
                self._spaces[subject] = space
        self._searches = {one: self._searches[one] for one in current if one in self._searches}
        self._next = min((one.due for one in self._searches.values()), default=_NEVER)
        channels = tuple(
            channel(metric, subject.instance) for subject in self._spaces for metric in METRICS
        )
        changed, self.channels = channels != self.channels, channels
        return changed

    def _enter(self, subject: Subject, space: _Namespace) -> bool:
        """Follow a subject by one of its processes, if it has a namespace of its own."""
        search = self._searches.setdefault(subject, _Search(self._turns.second))
        if self._turns.second < search.due:
            return False
        taken = {self._host, *(one.id for one in self._spaces.values() if one.id)}
        for pid in self._processes(subject):
            namespace = self._namespace(pid)
            if namespace and namespace not in taken and space.enter(pid, namespace):
                del self._searches[subject]
                return True
        search.missed(self._turns.second)
        return False

    def _processes(self, subject: Subject) -> list[str]:
        """One process of each cgroup of the subject, the first few."""
        if self._tree is None:
            return []
        found = []
        for cgroup in within(self._tree, subject.path):
            try:
                with (cgroup / "cgroup.procs").open("rb") as file:
                    pid = file.readline().strip().decode()
            except OSError:
                continue
            if pid.isdigit() and pid != "0":
                found.append(pid)
            if len(found) == _TRIED:
                break
        return found

    def _namespace(self, pid: str) -> str:
        """What tells namespaces apart, ``net:[4026531840]``; "" where it may not be seen."""
        try:
            return os.readlink(self._proc / pid / "ns/net")  # noqa: PTH115 - no Path is wanted
        except OSError:
            return ""
