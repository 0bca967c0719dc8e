"""The subjects of a spliced node, announced as a collector would: each cgroup is a pod.

A cgroup that comes back after it was gone is another pod of the same name, with another uid.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from reveal_contract.channels import ChannelTable
from reveal_contract.subjects import Identity, SubjectKind
from reveal_contract.time_units import NS_PER_SECOND

NAMESPACE = "ml"
_OLD_NS = 3600 * NS_PER_SECOND  # age of what is there from the start


@dataclass
class SubjectTable:
    """Takes the tables of successive slices."""

    _known: dict[str, Identity] = field(default_factory=dict)
    _times: dict[str, int] = field(default_factory=dict)  # how often an instance appeared
    _last: bytes = b""

    def update(self, table: ChannelTable, start_ns: int) -> bool:
        """Note who is there in a second; return whether that changed."""
        if table.key == self._last:
            return False
        first, self._last = not self._last, table.key
        present = instances(table)
        alive = {name for name, each in self._known.items() if not each.until_ns}
        for name in alive - present:
            self._known[name] = replace(self._known[name], until_ns=start_ns)
        for name in present - alive:
            self._times[name] = self._times.get(name, 0) + 1
            since_ns = start_ns - _OLD_NS if first else start_ns
            self._known[name] = identity(name, self._times[name], since_ns)
        return present != alive

    def identities(self) -> list[Identity]:
        return [self._known[name] for name in sorted(self._known)]


def instances(table: ChannelTable) -> set[str]:
    """Return the subjects that have channels; parts of a tick (``#1``) are not subjects."""
    return {
        channel.instance
        for channel in (*table.fast, *table.slow)
        if ".subject." in channel.metric and channel.instance and "#" not in channel.instance
    }


def pod_name(instance: str) -> str:
    """Return the name of the pod that a cgroup of a recording belongs to."""
    return instance.strip("/").replace("/", "-").replace("_", "-").replace("reveal-", "")


def identity(instance: str, number: int, since_ns: int) -> Identity:
    """Return what a subject is announced as; a process group stays what it is."""
    if not instance.startswith("/") or instance == "/":
        return Identity(
            instance, SubjectKind.CGROUP, name=instance, cgroup=instance, since_ns=since_ns
        )
    name = pod_name(instance)
    return Identity(
        instance, SubjectKind.POD, uid=f"{name}-{number}", namespace=NAMESPACE, name=name,
        cgroup=instance, since_ns=since_ns,
    )  # fmt: skip
