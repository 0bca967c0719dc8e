"""All facts of a host; topics that change rarely are read less often."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from reveal_collector.facts import cpu, devices, disks, gpus, kernel, memory, nics
from reveal_collector.readers.source import Roots
from reveal_contract.facts import Cpu, Facts, InterruptVectors, Kernel

log = logging.getLogger(__name__)

# Rounds (of a minute) between two reads of facts that rarely change, and of facts with a file for
# every CPU or interrupt: on a host of hundreds of CPUs these are thousands of files.
_IDENTITY_ROUNDS, _THOROUGH_ROUNDS = 10, 5

T = TypeVar("T")
U = TypeVar("U")


def no_sizes(nic: str) -> nics.NicSizes:
    """Return no sizes, where the drivers of NICs cannot be queried."""
    return nics.NicSizes()


def no_library() -> gpus.NvmlAnswer:
    """Return no GPUs, where no GPU vendor's library is available."""
    return gpus.NvmlAnswer()


@dataclass(frozen=True)
class DeviceQueries:
    """Queries for facts that are in no file: drivers of NICs, libraries of GPUs."""

    sizes: nics.QuerySizes = no_sizes
    gpus: gpus.QueryGpus = no_library


class FactsReader:
    """Reads the facts of the host under ``roots``; a topic that fails is omitted alone."""

    def __init__(self, node: str, roots: Roots, queries: DeviceQueries | None = None) -> None:
        self._node, self._roots, self._queries = node, roots, queries or DeviceQueries()
        self._round = 0
        self._cpu, self._kernel = Cpu(), Kernel()
        self._identities = (self._cpu, self._kernel)  # without what an operator can change
        self._vectors: dict[str, InterruptVectors] = {}

    def read(self) -> Facts:
        """Return the current facts; those that rarely change are up to ten calls old.

        Clock policies of single CPUs and moved interrupts are up to five calls old.
        """
        roots = self._roots
        if self._round % _IDENTITY_ROUNDS == 0:
            self._cpu = _read_topic(lambda: cpu.identity(roots), Cpu())
            self._kernel = _read_topic(
                lambda: kernel.identity(roots, self._cpu.clock_flags), Kernel()
            )
            self._identities = (self._cpu, self._kernel)
        thorough = self._round % _THOROUGH_ROUNDS == 0
        self._round += 1
        # settings that cannot be read are left out, never those of the round before
        self._cpu = _read_topic(
            lambda: cpu.settings(roots, self._cpu, thorough), self._identities[0]
        )
        known = {} if thorough else self._vectors
        on_bus = _read_topic(lambda: devices.devices(roots, known), ())
        self._vectors = {device.address: device.vectors for device in on_bus}
        answer = _read_topic(self._queries.gpus, gpus.NvmlAnswer())
        return Facts(
            node=self._node,
            cpu=self._cpu,
            memory=_read_topic(lambda: memory.memory(roots), Facts().memory),
            kernel=_read_topic(lambda: kernel.settings(roots, self._kernel), self._identities[1]),
            devices=on_bus,
            nics=_read_topic(lambda: nics.nics(roots, self._queries.sizes), ()),
            bonds=_read_topic(lambda: nics.bonds(roots), ()),
            ports=_read_topic(lambda: nics.ports(roots), ()),
            gpus=_read_topic(lambda: gpus.gpus(roots, on_bus, answer.gpus), ()),
            processes=_read_topic(lambda: gpus.processes(roots, answer.processes), ()),
            disks=_read_topic(lambda: disks.disks(roots), ()),
            drivers={**_read_topic(lambda: gpus.versions(roots), {}), **answer.versions},
        )


def _read_topic(read: Callable[[], T], fallback: U) -> T | U:
    """Return the facts of a topic; the fallback if it fails, to keep the other topics."""
    try:
        return read()
    except Exception:
        log.debug("a topic of the facts cannot be read", exc_info=True)
        return fallback
