"""Facts that are in no file: ring and queue sizes of network cards, and NVML's data of GPUs.

They are queried only on the running machine itself.  NVML is queried only while the collector has
it open anyway: initializing it would wake idle GPUs.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

from reveal_collector.devices.ethtool import CurrentAndMaximum, Ethtool
from reveal_collector.facts.gpus import NvmlAnswer
from reveal_collector.facts.inventory import DeviceQueries, no_library, no_sizes
from reveal_collector.facts.nics import NicSizes
from reveal_collector.readers.source import Roots
from reveal_contract.facts import Gpu

_NVML, _CARDS = "nvml", "ethtool"
_WORKING_STATE = 2  # P0 to P2: computing; P8 and more: idle; P15: least power


def queries_for(roots: Roots, nvml_answers: Callable[[], bool]) -> DeviceQueries:
    """Return the queries that are possible on this host.

    NVML is queried only while ``nvml_answers``: the collector has it open and it does not hang.
    """

    def query_gpus() -> NvmlAnswer:
        return query_nvml(roots) if nvml_answers() else no_library()

    return DeviceQueries(card_sizes, query_gpus) if roots.live else DeviceQueries()


def all_queries(roots: Roots, hung: Collection[str] = ()) -> DeviceQueries:
    """Return all queries, also those that must initialize NVML, but none of a driver that hangs.

    ``hung`` are drivers as sources name them.
    """
    if not roots.live:
        return DeviceQueries()
    sizes = no_sizes if _CARDS in hung else card_sizes
    return DeviceQueries(sizes, no_library if _NVML in hung else lambda: query_nvml(roots))


def card_sizes(name: str) -> NicSizes:
    """Return the ring and channel sizes of one card, as far as its driver reports them."""
    tool = Ethtool()
    try:
        card = tool.card(name)
    except OSError:
        return no_sizes(name)
    finally:
        tool.close()
    ring, channels = card.rx_ring or CurrentAndMaximum(0, 0), card.queues or CurrentAndMaximum(0, 0)
    return NicSizes(
        ring.current or None,
        ring.maximum or None,
        channels.current or None,
        channels.maximum or None,
    )


def query_nvml(roots: Roots) -> NvmlAnswer:
    """Return GPUs, their processes, and the driver and CUDA versions; raises ``Unsupported``."""
    from reveal_collector.nvml import devices, library  # noqa: PLC0415 - 2 MB for GPU hosts only

    nvml = library.load()
    library.start(nvml)
    try:
        found = devices.enumerate_gpus(nvml, roots.sys)
        pids = {device.gpu.pci_bus_id: _pids(nvml, device.handle) for device in found}
        resting = {each.gpu.pci_bus_id for each in found if _is_resting(nvml, each.handle)}
        gpus = [_gpu(nvml, device) for device in found]
        cuda = _answer(nvml, nvml.nvmlSystemGetCudaDriverVersion)
        driver = _answer(nvml, nvml.nvmlSystemGetDriverVersion)
    finally:
        library.stop(nvml)
    versions = {}
    if driver:
        versions["nvidia"] = library.text(driver)
    if cuda:
        versions["cuda"] = f"{cuda // 1000}.{cuda % 1000 // 10}"
    uses = [(pid, address) for address, of_gpu in pids.items() for pid in of_gpu or ()]
    return NvmlAnswer(gpus, uses, versions, resting, complete=None not in pids.values())


def _gpu(nvml: Any, device: Any) -> Gpu:
    persistence = _answer(nvml, nvml.nvmlDeviceGetPersistenceMode, device.handle)
    ecc = _answer(nvml, nvml.nvmlDeviceGetEccMode, device.handle)
    return Gpu(
        pci=device.gpu.pci_bus_id,
        name=device.gpu.name,
        uuid=device.gpu.uuid,
        persistence=None if persistence is None else bool(persistence),
        ecc=None if ecc is None else bool(ecc[0]),
        mig=device.gpu.mig_enabled,
    )


def _pids(nvml: Any, handle: Any) -> list[int] | None:
    """Return the processes on a GPU; None where they cannot be listed."""
    listed = _answer(nvml, nvml.nvmlDeviceGetComputeRunningProcesses, handle)
    return None if listed is None else [process.pid for process in listed]


def _is_resting(nvml: Any, handle: Any) -> bool:
    """Return whether a GPU saves power: it may then lower its link, also with a program on it."""
    state = _answer(nvml, nvml.nvmlDeviceGetPerformanceState, handle)
    return state is not None and state > _WORKING_STATE


def _answer(nvml: Any, query: Any, *arguments: Any) -> Any:
    """Return the library's answer; None where this GPU or driver does not support the query."""
    try:
        return query(*arguments)
    except nvml.NVMLError:
        return None
