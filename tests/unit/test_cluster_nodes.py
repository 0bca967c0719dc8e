"""What nodes are told, and how cgroups and state of a cluster are read."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from cluster import cgroups, inside, machine, nodefiles, supervisor
from cluster.handle import Cluster, supervised
from cluster.inside import Inside
from cluster.network import BRIDGED, LOOPBACK


def test_a_node_has_an_address_and_a_range_of_pods() -> None:
    assert (BRIDGED.node(2), BRIDGED.pods_of(2)) == ("10.89.0.12", "10.245.2.0/24")
    assert BRIDGED.dns == "10.97.0.10"
    assert BRIDGED.has_nodes
    assert not LOOPBACK.has_nodes
    assert len(BRIDGED.plug(9)) < 16  # IFNAMSIZ


def test_what_a_first_process_is_told_survives_its_file(tmp_path: Path) -> None:
    told = Inside(tmp_path / "node1", 1, BRIDGED, {"kubelet": "/k", "kube-proxy": "/p"}, ("a.tar",))
    told.save(tmp_path / "inside.json")
    assert inside.load(tmp_path / "inside.json") == told


@pytest.mark.parametrize("free", [True, False])
def test_scores_are_clamped_only_where_they_must_be(
    free: bool, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(machine, "may_raise_limits", lambda: free)
    text = nodefiles._containerd(tmp_path)
    assert f"restrict_oom_score_adj = {'false' if free else 'true'}" in text
    assert ('BinaryName = "runc"' in text) is free


@pytest.mark.parametrize(
    ("options", "wanted"),
    [
        ("rw,nosuid,relatime,cpu,cpuacct", "cpu,cpuacct"),
        ("rw,relatime,name=systemd", "none,name=systemd"),
        ("rw,xattr,release_agent=/lib/agent,name=systemd", "none,name=systemd"),
    ],
)
def test_a_hierarchy_is_mounted_again_by_its_name(options: str, wanted: str) -> None:
    assert cgroups._controllers(options) == wanted


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
