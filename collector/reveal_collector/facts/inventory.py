"""All facts of a host; topics that change rarely are read less often."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

from reveal_collector.facts import cpu, devices, disks, files, gpus, kernel, memory, nics
from reveal_collector.readers.guarded_call import GuardedCalls
from reveal_collector.readers.source import Roots
from reveal_contract.facts import Cpu, Facts, InterruptVectors, Kernel

log = logging.getLogger(__name__)

# Rounds (of a minute) between two reads of facts that rarely change, and of facts with a file for
# every CPU or interrupt: on a host of hundreds of CPUs these are thousands of files.
_IDENTITY_ROUNDS, _THOROUGH_ROUNDS = 10, 5
# A topic that takes longer hangs.  On a host with more work than CPUs some take seconds.
_TIMEOUT_S = 10.0

T = TypeVar("T")
U = TypeVar("U")


def no_sizes(nic: str) -> nics.NicSizes:
    """Return no sizes, where the drivers of NICs cannot be queried."""
    return nics.NicSizes()


def no_library() -> gpus.NvmlAnswer:
    """Return no GPUs, where no GPU vendor's library is available."""
    return gpus.NvmlAnswer(complete=False)


@dataclass(frozen=True)
class DeviceQueries:
    """Queries for facts that are in no file: drivers of NICs, libraries of GPUs."""

    sizes: nics.QuerySizes = no_sizes
    gpus: gpus.QueryGpus = no_library


class FactsReader:
    """Reads the facts of the host under ``roots``; a topic that fails is omitted alone.

    Such topics, and lists whose folder cannot be read, are named in ``Facts.unread``.  So are
    topics whose driver hangs: they are not read until it answers.
    """

    def __init__(self, node: str, roots: Roots, queries: DeviceQueries | None = None) -> None:
        self._node, self._roots, self._queries = node, roots, queries or DeviceQueries()
        self._calls = GuardedCalls("reveal-facts-io", _TIMEOUT_S)
        self._round = 0
        self._cpu, self._kernel = Cpu(), Kernel()
        self._identities = (self._cpu, self._kernel)  # without what an operator can change
        self._vectors: dict[str, InterruptVectors] = {}
        self._unread_identities: set[str] = set()
        self._unread: set[str] = set()

    @property
    def hung_since_ns(self) -> int:
        """When the oldest read that hangs began (monotonic); 0 while none does."""
        return self._calls.hung_since_ns

    def read(self) -> Facts:
        """Return the current facts; those that rarely change are up to ten calls old.

        Clock policies of single CPUs and moved interrupts are up to five calls old.
        """
        self._read_identities()
        thorough = self._round % _THOROUGH_ROUNDS == 0
        self._round += 1
        self._unread = {*self._unread_identities, *self._unreadable_lists()}
        facts = self._read_settings(thorough)
        self._calls.release()  # the next read is a minute away
        return replace(facts, unread=tuple(sorted(self._unread)))

    def _read_identities(self) -> None:
        if self._round % _IDENTITY_ROUNDS:
            return
        roots, self._unread = self._roots, set()
        self._cpu = self._topic("cpu", lambda: cpu.identity(roots), Cpu())
        self._kernel = self._topic(
            "kernel", lambda: kernel.identity(roots, self._cpu.clock_flags), Kernel()
        )
        self._identities = (self._cpu, self._kernel)
        self._unread_identities = self._unread

    def _read_settings(self, thorough: bool) -> Facts:
        roots, topic = self._roots, self._topic
        # settings that cannot be read are left out, never those of the round before
        self._cpu = topic(
            "cpu", lambda: cpu.settings(roots, self._cpu, thorough), self._identities[0]
        )
        known = {} if thorough else self._vectors
        on_bus = topic("devices", lambda: devices.devices(roots, known), ())
        self._vectors = {device.address: device.vectors for device in on_bus}
        answer = topic("processes", self._queries.gpus, gpus.NvmlAnswer(complete=False))
        if not answer.complete and any(device.kind == "gpu" for device in on_bus):
            self._unread.add("processes")
        return Facts(
            node=self._node,
            cpu=self._cpu,
            memory=topic("memory", lambda: memory.memory(roots), Facts().memory),
            kernel=topic(
                "kernel", lambda: kernel.settings(roots, self._kernel), self._identities[1]
            ),
            devices=gpus.without_resting_links(on_bus, answer.resting),
            nics=topic("nics", lambda: nics.nics(roots, self._queries.sizes), ()),
            bonds=topic("bonds", lambda: nics.bonds(roots), ()),
            ports=topic("ports", lambda: nics.ports(roots), ()),
            gpus=topic("gpus", lambda: gpus.gpus(roots, on_bus, answer.gpus), ()),
            processes=topic("processes", lambda: gpus.processes(roots, answer.processes), ()),
            disks=topic("disks", lambda: disks.disks(roots), ()),
            drivers={**topic("drivers", lambda: gpus.versions(roots), {}), **answer.versions},
        )

    def _topic(self, name: str, read: Callable[[], T], fallback: U) -> T | U:
        """Return the facts of a topic; the fallback if it fails, to keep the other topics."""
        try:
            return self._calls.call(name, read)
        except Exception:
            log.debug("%s: these facts cannot be read", name, exc_info=True)
            self._unread.add(name)
            return fallback

    def _unreadable_lists(self) -> Iterator[str]:
        """Yield the lists of facts whose folder or file exists and cannot be read."""
        for name, path in _lists(self._roots).items():
            try:
                files.check_readable(path)
            except FileNotFoundError:
                continue  # this host has none
            except OSError:
                yield name


def _lists(roots: Roots) -> dict[str, Path]:
    devices_folder = roots.sys / "devices/system"
    net = roots.sys / "class/net"
    return {
        "cpu.policies": devices_folder / "cpu/cpufreq",
        "memory.nodes": devices_folder / "node",
        "memory.huge": roots.sys / "kernel/mm/hugepages",
        "memory.swaps": roots.proc / "swaps",
        "kernel.services": roots.proc,
        "devices": roots.sys / "bus/pci/devices",
        "nics": net,
        "bonds": net,
        "ports": roots.sys / "class/infiniband",
        "disks": roots.sys / "block",
    }
