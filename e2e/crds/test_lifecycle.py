"""Definitions and their objects through their life, as a newcomer's kubectl meets them."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from cluster.plane import ControlPlane
from reveal_contract.kube import names
from reveal_contract.kube.anomaly_report import ReportOwner, report
from support import finding_factory
from support.api_objects import apply_status, profile
from support.api_server import ApiError, Kube, Launcher, unique, wait_for
from support.crd_schema import DEFINITIONS, EXAMPLES
from support.kubectl import kubectl

FOLDERS = (DEFINITIONS[0].parent, EXAMPLES[0].parent)
GONE_S = 30
# the garbage collector looks for new kinds every 30 s, and only then at their objects
COLLECTED_S = 90


@pytest.fixture
def own(launch_control_plane: Launcher) -> ControlPlane:
    """Others have objects of these kinds, which must not go with the definitions."""
    return launch_control_plane()


def newcomer(plane: ControlPlane, folder: Path) -> list[str]:
    """What each object of a folder is said to be: created, configured or unchanged."""
    output = kubectl(plane, "apply", "-f", str(folder)).splitlines()
    return [line.rpartition(" ")[2] for line in output]


def test_folders_can_be_applied_and_deleted_in_any_order(own: ControlPlane) -> None:
    kube = Kube(own.kubeconfig)
    definitions, examples = FOLDERS
    assert newcomer(own, definitions) == ["created"] * len(DEFINITIONS)
    kube.install(*DEFINITIONS)  # the same by server-side apply, and waits until they are served
    assert newcomer(own, examples) == ["created"] * len(EXAMPLES)
    assert newcomer(own, examples) == ["unchanged"] * len(EXAMPLES)
    add_report(kube, next(iter(kube.items(names.API_VERSION, names.PROFILE_KIND))))
    # definitions first: their objects go with them, and nothing is left to wait for
    kubectl(own, "delete", "-f", str(definitions), f"--timeout={GONE_S}s")
    fresh = Kube(own.kubeconfig)
    with pytest.raises(ApiError):
        fresh.items(names.API_VERSION, names.PROFILE_KIND)
    # and they come back empty
    kube.install(*DEFINITIONS)
    assert kube.items(names.API_VERSION, names.PROFILE_KIND) == []
    assert kube.items(names.API_VERSION, names.REPORT_KIND) == []


@pytest.mark.timeout(180)
def test_deleting_a_profile_deletes_only_its_reports(kube: Kube) -> None:
    kube.install(*DEFINITIONS)
    mine, other = (kube.create(profile(name=unique("life"))) for _ in range(2))
    kept, gone = add_report(kube, other), add_report(kube, mine)
    kube.delete(mine)
    wait_for(lambda: found(kube, gone) is None, COLLECTED_S, "the report is gone with its profile")
    assert found(kube, kept) is not None
    kube.delete(other)
    wait_for(lambda: found(kube, kept) is None, GONE_S, "and the other's with the other")


def add_report(kube: Kube, owner: dict[str, object]) -> str:
    """One report of a profile, whole; its name."""
    about = owner["metadata"]
    assert isinstance(about, dict)
    finding = finding_factory.cpu_contention(time.time_ns())
    result = report(finding, about["name"], about["generation"])
    kube.create(result.to_create(ReportOwner(about["name"], about["uid"], about["generation"])))
    apply_status(kube, result.to_apply())
    return result.name


def found(kube: Kube, name: str) -> dict[str, object] | None:
    return kube.get(names.API_VERSION, names.REPORT_KIND, name)
