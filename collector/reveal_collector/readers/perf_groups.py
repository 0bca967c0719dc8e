"""A source that counts perf events on many CPUs: opens groups, reads them, adds up columns."""

from __future__ import annotations

import errno
import resource
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from reveal_collector.kernel_interfaces.errors import LayoutChanged, Unsupported
from reveal_collector.kernel_interfaces.perf_event import PerfEvent, PerfGroup
from reveal_collector.readers.reference_reader import picker
from reveal_collector.readers.source import CHECK_EVERY, Roots
from reveal_collector.readers.sums import identified, total
from reveal_collector.readers.sysfs_attributes import parse_fields, read_text
from reveal_collector.readers.textfile import OpenFile
from reveal_contract.channels import Channel
from reveal_contract.metric import Lane

# Groups in one read: each interrupts its CPU, which costs 2 to 3 us on bare metal.
GROUPS_PER_READ = 80
_CAP_PERFMON, _CAP_SYS_ADMIN = 38, 21  # bits of CapEff, capabilities(7)
_SECCOMP_FILTER = "2"  # Seccomp of /proc/PID/status, proc(5)

CpuEvent = tuple[int, PerfEvent]  # a CPU and an event counted on it


@dataclass(frozen=True)
class CountingPlan:
    """What to count: groups of events, each on one CPU, and the events that each column adds.

    A column is omitted when the kernel refuses one of its events.
    """

    groups: Sequence[tuple[int, Sequence[PerfEvent]]]
    columns: Mapping[Channel, Sequence[CpuEvent]]


class PerfGroupSource:
    """A source that counts perf events; ``plan`` is called again when CPUs come or go.

    Missing counts reveal a CPU that went offline.  Whether a CPU came online is checked every
    ``CHECK_EVERY`` reads.

    In the slow lane, a host of hundreds of CPUs is read in rotation: a share of the groups each
    second.  The other groups keep their last counts.  The increments of a column are up to a few
    seconds late for some CPUs, and their sum over time is exact.
    """

    def __init__(
        self, name: str, lane: Lane, roots: Roots, plan: Callable[[Roots], CountingPlan]
    ) -> None:
        self.name, self.lane = name, lane
        self.channels: tuple[Channel, ...] = ()
        self.groups: list[PerfGroup] = []
        self._roots, self._plan = roots, plan
        self._online = OpenFile(roots.sys / "devices/system/cpu/online")
        self._cpus = b""
        self._rotation = self._reads = 0
        self._openings = 0  # of the groups: their counts begin at 0 each time
        self._counts: list[tuple[int | None, ...]] = []
        self._picks: list[Callable[[Sequence[int | None]], Sequence[int | None]]] = []

    def open(self) -> None:
        """Open the groups; raises ``Unsupported`` where perf is refused."""
        if not self._roots.live:
            raise Unsupported("events can be counted only on the running machine itself")
        self.close()
        self._online.open()
        try:
            self._learn()
        except OSError as error:
            self.close()
            raise refusal(error, self._roots) from None
        except Unsupported:
            self.close()
            raise

    def read(self) -> Sequence[int | None]:
        """Read the groups that are due and return the sum of each column."""
        self._refresh()
        self._reads += 1
        if (
            self._has_missing or self._reads % CHECK_EVERY == 0
        ) and self._online.read() != self._cpus:
            self._learn()
            raise LayoutChanged(self.name)
        flat = [count for counts in self._counts for count in counts]
        return [total(pick(flat)) for pick in self._picks]

    def close(self) -> None:
        """Close all groups."""
        self._close_groups()
        self.channels = ()
        self._online.close()

    @property
    def _has_missing(self) -> bool:
        """Whether a CPU returned no counts: it is offline, or its events did not run."""
        return any(counts[:1] == (None,) for counts in self._counts)

    def _close_groups(self) -> None:
        for group in self.groups:
            group.close()
        self.groups = []

    def _refresh(self) -> None:
        rotations = 1
        if self.lane is not Lane.RARE:
            rotations = -(-len(self.groups) // GROUPS_PER_READ)
        self._rotation = (self._rotation + 1) % rotations
        for index in range(self._rotation, len(self.groups), rotations):
            group = self.groups[index]
            self._counts[index] = group.read() or (None,) * len(group.events)

    def _learn(self) -> None:
        self._close_groups()
        self._cpus = self._online.read()
        plan = self._plan(self._roots)
        allowed = affordable(len(plan.groups))
        self.groups = opened([(cpu, events[:allowed]) for cpu, events in plan.groups])
        positions = {
            (group.cpu, event): index
            for index, (group, event) in enumerate(
                (group, event) for group in self.groups for event in group.events
            )
        }
        columns = {
            channel: [positions[part] for part in parts]
            for channel, parts in plan.columns.items()
            if parts and all(part in positions for part in parts)
        }
        if not columns:
            raise OSError(errno.ENOENT, "this kernel knows none of the events")
        self._openings += 1
        self.channels = tuple(identified(channel, [self._openings]) for channel in columns)
        self._picks = [picker(parts) for parts in columns.values()]
        self._counts = [(0,) * len(group.events) for group in self.groups]


def opened(requested: Iterable[tuple[int, Sequence[PerfEvent]]]) -> list[PerfGroup]:
    """Open the groups; split those that need more counters of a kind than the CPU has.

    The first CPU determines how to split; events it does not know are not tried on the others.
    Raises ``OSError``, with nothing left open, where perf is refused or no group opens.
    """
    groups: list[PerfGroup] = []
    parts: dict[tuple[PerfEvent, ...], list[list[PerfEvent]]] = {}
    try:
        for cpu, events in requested:
            key = tuple(events)
            if key in parts:
                groups += [PerfGroup(cpu, part) for part in parts[key]]
            else:
                fitting = fitted(cpu, key)
                groups += fitting
                parts[key] = [group.events for group in fitting]
        if not groups:
            raise OSError(errno.ENOENT, "this kernel knows none of the events")
    except OSError:
        for group in groups:
            group.close()
        raise
    return groups


def fitted(cpu: int, events: Sequence[PerfEvent]) -> list[PerfGroup]:
    """Open these events of one CPU in as few groups as the kernel accepts.

    Events that the kernel does not know are in none of them.
    """
    groups: list[PerfGroup] = []
    left = list(events)
    try:
        while left:
            try:
                groups.append(PerfGroup(cpu, left))
            except OSError as error:
                if error.errno == errno.ENOENT:  # the kernel knows none of the events
                    break
                if error.errno != errno.EINVAL:
                    raise
                left = left[1:]  # this event cannot be counted even alone
            else:
                left = [event for event in left if event not in groups[-1].events]
    except OSError:
        for group in groups:
            group.close()
        raise
    return groups


def affordable(groups: int) -> int:
    """Return how many events a group may have if all groups use half of the file limit at most."""
    allowed, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if allowed == resource.RLIM_INFINITY:
        return 1 << 16
    return allowed // 2 // max(groups, 1)


def refusal(error: OSError, roots: Roots) -> Unsupported:
    """Return why perf_event_open failed with this error, and the remedy."""
    status = parse_fields(read_text(roots.proc / "self/status"))
    granted = int(status.get("CapEff", "0"), 16)
    capable = bool((granted >> _CAP_PERFMON | granted >> _CAP_SYS_ADMIN) & 1)
    filtered = status.get("Seccomp") == _SECCOMP_FILTER
    paranoid = read_text(roots.proc / "sys/kernel/perf_event_paranoid") or "restrictive"
    return explained(error, capable, filtered, paranoid)


def explained(error: OSError, capable: bool, filtered: bool, paranoid: str) -> Unsupported:
    """Return the reason and the remedy; ``capable`` of CAP_PERFMON, ``filtered`` by seccomp."""
    if error.errno in (errno.EACCES, errno.EPERM):
        if capable and filtered:
            return Unsupported(
                "the container's seccomp profile refuses perf_event_open",
                "allow the perf_event_open system call in the profile, or run unconfined",
            )
        if capable:
            return Unsupported(
                "perf_event_open is refused although the process has CAP_PERFMON",
                "check the security module (SELinux, AppArmor, lockdown) of this host",
            )
        also = "; in a container also allow the perf_event_open system call" if filtered else ""
        return Unsupported(
            f"perf_event_open needs CAP_PERFMON while kernel.perf_event_paranoid is {paranoid}",
            "run as root or with CAP_PERFMON (before Linux 5.8: CAP_SYS_ADMIN), or set "
            f"kernel.perf_event_paranoid to 0{also}",
        )
    if error.errno == errno.ENOSYS:
        return Unsupported(
            "this kernel has no perf_event_open, or the container's seccomp profile hides it",
            "use a kernel with CONFIG_PERF_EVENTS; allow the system call in the profile",
        )
    if error.errno in (errno.EMFILE, errno.ENFILE):
        return Unsupported("too few file descriptors for the counters of all CPUs",
                           "raise the limit of open files (RLIMIT_NOFILE)")  # fmt: skip
    return Unsupported(f"perf_event_open: {error.strerror or error}")
