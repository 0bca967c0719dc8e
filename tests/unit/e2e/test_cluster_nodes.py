"""The configuration of nodes, and how cgroups and the state of a cluster are read."""

from __future__ import annotations

import json
import os
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from cluster import (
    cgroups,
    emulator,
    inside,
    machine,
    network,
    nodefiles,
    rootfs,
    supervisor,
    vm,
    vmfiles,
)
from cluster.emulator import Cable
from cluster.handle import Cluster, supervised
from cluster.inside import Inside
from cluster.network import BRIDGED, LOOPBACK
from cluster.nodefiles import Setting
from cluster.rootfs import RootFs


def test_a_node_has_an_address_and_a_range_of_pods() -> None:
    assert (BRIDGED.node(2), BRIDGED.pods_of(2)) == ("10.89.0.12", "10.245.2.0/24")
    assert BRIDGED.dns == "10.97.0.10"
    assert BRIDGED.has_nodes
    assert not LOOPBACK.has_nodes
    assert len(BRIDGED.plug(9)) < 16  # IFNAMSIZ


def test_the_settings_of_a_first_process_survive_their_file(tmp_path: Path) -> None:
    saved = Inside(
        tmp_path / "node1", 1, BRIDGED, {"kubelet": "/k", "kube-proxy": "/p"}, ("a.tar",)
    )
    saved.save(tmp_path / "inside.json")
    assert inside.load(tmp_path / "inside.json") == saved


@pytest.mark.parametrize("free", [True, False])
def test_scores_are_clamped_only_where_they_must_be(
    free: bool, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(machine, "may_raise_limits", lambda: free)
    text = nodefiles._containerd(_setting(tmp_path))
    assert f"restrict_oom_score_adj = {'false' if free else 'true'}" in text
    assert ('BinaryName = "runc"' in text) is free
    assert "SystemdCgroup = false" in text


def test_a_machine_of_its_own_has_systemd_make_its_cgroups(tmp_path: Path) -> None:
    nodefiles.write(tmp_path, replace(_setting(Path("/told")), shares_kernel=False))
    text = (tmp_path / "containerd.toml").read_text()
    assert "SystemdCgroup = true" in text
    assert "restrict_oom_score_adj = false" in text
    kubelet = json.loads((tmp_path / "kubelet.json").read_text())
    assert kubelet["cgroupDriver"] == "systemd"
    assert kubelet["resolvConf"] == "/told/resolv.conf"
    assert [item["key"] for item in kubelet["registerWithTaints"]] == ["nvidia.com/gpu"]


def _setting(folder: Path) -> Setting:
    files = (folder / "authority.crt", folder / "node1.crt", folder / "node1.key")
    return Setting("node1", 1, BRIDGED, folder, *files)


@pytest.mark.parametrize(("name", "number"), [("node1", 1), ("node9", 9), ("vm1", 9), ("vm2", 8)])
def test_virtual_machines_have_the_last_numbers(name: str, number: int) -> None:
    assert network.number(name) == number


@pytest.mark.parametrize("name", ["node0", "node10", "node", "vm", "other"])
def test_what_is_no_node_has_no_number(name: str) -> None:
    with pytest.raises(ValueError):
        network.number(name)


def test_virtual_machines_boot_first_as_they_take_longest() -> None:
    assert supervisor.Plan(2, {}, vms=1).names == ["vm1", "node1", "node2"]


def test_only_images_that_workloads_and_collectors_need_go_to_a_virtual_machine() -> None:
    files = ("pause-1.tar", "coredns-2.tar", "reveal-collector-3.tar", "reveal-analyzer-4.tar")
    assert [item for item in files if vm.needed(Path(item))] == [
        "pause-1.tar",
        "reveal-collector-3.tar",
    ]


def test_a_virtual_machine_boots_from_its_own_disk_and_gets_its_name(tmp_path: Path) -> None:
    cable = Cable("reveal0n9", "52:54:00:00:00:09")
    command = emulator.command(RootFs(tmp_path), (tmp_path / "root.img",), cable, "vm1")
    words = command[command.index("-append") + 1].split()
    assert {"root=LABEL=reveal-root", "systemd.hostname=vm1", "console=ttyS0"} <= set(words)
    assert "tap,id=cable,ifname=reveal0n9,script=no,downscript=no" in command


def test_a_virtual_machine_has_routes_to_the_pods_of_all_other_nodes() -> None:
    network = vmfiles.links(BRIDGED, 9)
    assert "Address=10.89.0.19/24\nGateway=10.89.0.1\n" in network
    assert network.count("[Route]") == 8
    assert "Destination=10.245.2.0/24\nGateway=10.89.0.12\n" in network


def test_a_kernel_that_does_not_start_under_kvm_is_emulated(tmp_path: Path) -> None:
    """There is no kernel in that folder, so none starts, whether there is KVM or not."""
    assert "tcg,thread=multi" in emulator.accelerator(RootFs(tmp_path))


def test_where_there_is_kvm_and_no_qemu_no_kernel_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert not emulator._starts(RootFs(tmp_path))


def test_virtual_machines_need_further_packages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(shutil, "which", lambda name: name if "qemu" not in name else None)
    assert "qemu-system-x86" in machine.missing(vms=1)
    assert "qemu-system-x86" not in machine.missing()


def test_the_disk_is_rebuilt_when_its_inputs_change(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    before = rootfs.digest()
    assert rootfs.digest() == before
    monkeypatch.setattr(rootfs, "_PACKAGES", (*rootfs._PACKAGES, "strace"))
    assert rootfs.digest() != before


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ("rw,nosuid,relatime,cpu,cpuacct", "cpu,cpuacct"),
        ("rw,relatime,name=systemd", "none,name=systemd"),
        ("rw,xattr,release_agent=/lib/agent,name=systemd", "none,name=systemd"),
    ],
)
def test_a_hierarchy_is_mounted_again_by_its_name(options: str, expected: str) -> None:
    assert cgroups._controllers(options) == expected


def test_a_number_used_again_is_no_supervisor(tmp_path: Path) -> None:
    mine = supervisor.started(os.getpid())
    assert supervised({"pid": os.getpid(), "started": mine})
    assert not supervised({"pid": os.getpid(), "started": mine - 1})
    assert not supervised({"pid": 1 << 30, "started": 0})
    assert not supervised({})
    assert not Cluster(tmp_path).running


def test_only_the_folder_of_a_cluster_is_removed(tmp_path: Path) -> None:
    mine, other = tmp_path / "mine", tmp_path / "other"
    for folder in (mine, other):
        (folder / "nodes").mkdir(parents=True)
    supervisor.Plan(1, {}).save(mine)
    for folder in (mine, other):
        supervisor.empty(folder)
    assert not mine.exists()
    assert (other / "nodes").exists()


def test_settings_of_the_machine_are_remembered_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    setting = tmp_path / "panic"
    setting.write_text("1\n")
    monkeypatch.setattr(machine, "_SETTINGS", (str(setting),))
    kept = tmp_path / "kept.json"
    machine.remember(kept)
    setting.write_text("10\n")
    machine.remember(kept)  # of a run that followed one that was killed
    assert json.loads(kept.read_text()) == {str(setting): "1\n"}
    machine.restore(kept)
    assert setting.read_text() == "1\n"
    assert not kept.exists()
