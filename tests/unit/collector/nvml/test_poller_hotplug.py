"""Hot-plugged drivers and GPUs, through the real pynvml and a scripted driver library."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from reveal_collector.kernel_interfaces.errors import Unsupported
from reveal_collector.nvml.snapshots import QUICK
from reveal_collector.readers.source import Roots
from reveal_collector.sources.nvml import sources
from reveal_contract.time_units import NS_PER_SECOND
from support.fake_nvml import Script, hgx_h100
from support.hosts.pci import Function, add_function
from support.hosts.tree import Tree
from support.nvml_poller import SteppedPoller


def test_a_driver_that_leaves_is_waited_for(script: Script) -> None:
    watch = SteppedPoller()
    before = watch.figures()
    script.change({"call.nvmlDeviceGetUtilizationRates": 1, "call.nvmlInitWithFlags": 18})
    watch.run(8)
    gone = watch.figures()
    assert gone.pop(("gpu.count", "")) == 0
    assert set(gone.values()) == {None}
    outage = watch.poller.outage
    assert outage is not None and "different versions" in outage.reason
    assert watch.now - outage.since_ns > 7 * NS_PER_SECOND
    script.change({"call.nvmlDeviceGetUtilizationRates": None, "call.nvmlInitWithFlags": None})
    watch.run(30)
    assert watch.figures().keys() == before.keys()
    assert watch.figures(QUICK)["gpu.utilization", "0"] == 90
    assert watch.poller.outage is None


def test_a_gpu_keeps_its_number_when_an_earlier_gpu_is_gone(script: Script) -> None:
    watch = SteppedPoller()
    remaining = {key[2:]: value for key, value in hgx_h100(2).items() if key.startswith("1.")}
    script.answers = {}
    script.change({"gpus": 1} | {f"0.{key}": value for key, value in remaining.items()})
    watch.run(11)
    assert watch.figures(QUICK)["gpu.utilization", "1"] == 91
    assert watch.figures()["gpu.lost", "0"] == 1
    assert watch.figures()["gpu.count", ""] == 1


def test_a_gpu_that_is_added_joins(script: Script) -> None:
    watch = SteppedPoller()
    script.change(hgx_h100(3))
    watch.run(11)
    assert watch.figures(QUICK)["gpu.utilization", "2"] == 92


def add_to_bus(tree: Tree, *addresses: str) -> dict[str, Any]:
    """Put GPUs of the driver on a bus; return the options of a poller that sees it."""
    for address in addresses:
        add_function(tree, Function(address))
        tree.write(f"driver/{address}/information", "Model: \t NVIDIA H100\n")
    return {"roots": Roots(sys=tree.roots.sys), "driver_folder": tree.root / "driver"}


@pytest.mark.parametrize("code", [15, 999])
def test_a_gpu_that_never_answered_is_lost_by_its_index(script: Script, code: int) -> None:
    script.change({"1.call.*": code})
    watch = SteppedPoller()
    figures = watch.figures()
    assert (figures["gpu.lost", "0"], figures["gpu.lost", "1"]) == (0, 1)
    assert (figures["gpu.count", ""], figures["gpu.expected", ""]) == (1, 2)
    script.change({"1.call.*": None})
    watch.run(11)
    assert watch.figures()["gpu.lost", "1"] == 0
    assert watch.figures()["gpu.count", ""] == 2
    assert watch.figures(QUICK)["gpu.utilization", "1"] == 91


def test_the_only_gpu_of_a_host_is_lost_although_it_never_answered(script: Script) -> None:
    script.change({"gpus": 1, "0.call.*": 15})
    figures = SteppedPoller().figures()
    assert figures["gpu.lost", "0"] == 1
    assert (figures["gpu.count", ""], figures["gpu.expected", ""]) == (0, 1)


def test_a_gpu_that_the_driver_does_not_count_is_lost_by_its_address(
    script: Script, tree: Tree
) -> None:
    watch = SteppedPoller(**add_to_bus(tree, "0000:19:00.0", "0000:2a:00.0", "0000:3b:00.0"))
    figures = watch.figures()
    assert {key[1]: value for key, value in figures.items() if key[0] == "gpu.lost"} == {
        "0": 0, "1": 0, "0000:3b:00.0": 1,
    }  # fmt: skip
    assert (figures["gpu.count", ""], figures["gpu.expected", ""]) == (2, 3)


def test_a_gpu_that_the_driver_counts_and_the_bus_has_is_lost_once(
    script: Script, tree: Tree
) -> None:
    script.change({"1.call.*": 15})
    watch = SteppedPoller(**add_to_bus(tree, "0000:19:00.0", "0000:2a:00.0"))
    assert watch.figures()["gpu.expected", ""] == 2
    assert watch.figures()["gpu.lost", "1"] == 1


def test_a_gpu_that_answered_once_is_lost_under_its_number_only(script: Script, tree: Tree) -> None:
    watch = SteppedPoller(**add_to_bus(tree, "0000:19:00.0", "0000:2a:00.0"))
    script.change({"1.call.*": 15})
    watch.run(25)
    lost = {key[1]: value for key, value in watch.figures().items() if key[0] == "gpu.lost"}
    assert lost == {"0": 0, "1": 1}
    assert watch.figures()["gpu.expected", ""] == 2


def test_a_gpu_that_this_process_may_not_use_is_not_lost(script: Script, tree: Tree) -> None:
    script.change({"1.call.*": 4})
    watch = SteppedPoller(**add_to_bus(tree, "0000:19:00.0", "0000:2a:00.0"))
    assert ("gpu.lost", "1") not in watch.figures()
    assert watch.figures()["gpu.expected", ""] == 1


@pytest.mark.parametrize(
    ("code", "text"),
    [(9, "not loaded"), (12, "no NVIDIA driver"), (4, "not permitted to use"), (18, "versions")],
)
def test_a_missing_driver_has_a_reason(script: Script, code: int, text: str) -> None:
    script.change({"call.nvmlInitWithFlags": code})
    for source in sources(Roots()):
        with pytest.raises(Unsupported, match=text) as refusal:
            source.open()
        assert refusal.value.remedy


def test_a_driver_without_a_gpu_is_no_source(script: Script) -> None:
    script.change({"gpus": 0})
    with pytest.raises(Unsupported, match="finds no GPU"):
        SteppedPoller()


def test_another_hosts_tree_has_no_gpus(tmp_path: Path) -> None:
    for source in sources(Roots(proc=tmp_path)):
        with pytest.raises(Unsupported, match="machine itself"):
            source.open()
