"""All facts of a host, each topic at its own pace."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from reveal_collector.facts import cpu, devices, disks, gpus, kernel, memory, nics
from reveal_collector.readers.source import Roots
from reveal_contract.facts import Cpu, Facts, Kernel, Vectors

log = logging.getLogger(__name__)

# rounds (of a minute) between two looks at what hardly changes, and at what has a file for
# every CPU or interrupt: on a host of hundreds of CPUs these are thousands
_SELDOM, _THOROUGH = 10, 5

T = TypeVar("T")
U = TypeVar("U")


def no_sizes(nic: str) -> nics.NicSizes:
    """Where the drivers of NICs cannot be asked."""
    return nics.NicSizes()


def no_library() -> gpus.NvmlAnswer:
    """Where no GPU vendor's library is there."""
    return gpus.NvmlAnswer()


@dataclass(frozen=True)
class DeviceQueries:
    """What is not in files: drivers of NICs, libraries of GPUs."""

    sizes: nics.QuerySizes = no_sizes
    gpus: gpus.QueryGpus = no_library


class FactsReader:
    """Reads the facts of the host under ``roots``; a topic that fails is left out, never all."""

    def __init__(self, node: str, roots: Roots, asks: DeviceQueries | None = None) -> None:
        self._node, self._roots, self._asks = node, roots, asks or DeviceQueries()
        self._round = 0
        self._cpu, self._kernel = Cpu(), Kernel()
        self._vectors: dict[str, Vectors] = {}

    def read(self) -> Facts:
        """The facts now; what hardly changes is as it was within the last ten calls.

        Clocks set CPU by CPU and interrupts moved are seen within five.
        """
        roots = self._roots
        if self._round % _SELDOM == 0:
            self._cpu = _tried(lambda: cpu.identity(roots), Cpu())
            self._kernel = _tried(lambda: kernel.identity(roots, self._cpu.clock_flags), Kernel())
        thorough = self._round % _THOROUGH == 0
        self._round += 1
        self._cpu = _tried(lambda: cpu.settings(roots, self._cpu, thorough), self._cpu)
        known = {} if thorough else self._vectors
        on_bus = _tried(lambda: devices.devices(roots, known), ())
        self._vectors = {device.address: device.vectors for device in on_bus}
        asked = _tried(self._asks.gpus, gpus.NvmlAnswer())
        return Facts(
            node=self._node,
            cpu=self._cpu,
            memory=_tried(lambda: memory.memory(roots), Facts().memory),
            kernel=_tried(lambda: kernel.settings(roots, self._kernel), self._kernel),
            devices=on_bus,
            nics=_tried(lambda: nics.nics(roots, self._asks.sizes), ()),
            bonds=_tried(lambda: nics.bonds(roots), ()),
            ports=_tried(lambda: nics.ports(roots), ()),
            gpus=_tried(lambda: gpus.gpus(roots, on_bus, asked.gpus), ()),
            processes=_tried(lambda: gpus.processes(roots, asked.processes), ()),
            disks=_tried(lambda: disks.disks(roots), ()),
            drivers={**_tried(lambda: gpus.versions(roots), {}), **asked.versions},
        )


def _tried(read: Callable[[], T], otherwise: U) -> T | U:
    """A foreign tree or a driver of a new kind must not cost the other topics."""
    try:
        return read()
    except Exception:
        log.debug("a topic of the facts cannot be read", exc_info=True)
        return otherwise
