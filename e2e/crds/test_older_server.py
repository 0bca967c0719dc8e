"""The definitions on the oldest API that the server at hand can play."""

from __future__ import annotations

import re
from functools import partial

import pytest

from cluster.plane import ControlPlane
from support import finding_factory
from support.api_objects import apply_status, profile, report_of
from support.api_server import ApiError, Kube, Launcher, wait_for
from support.crd_schema import DEFINITIONS, definition
from support.profile_spec_cases import BAD, GOOD

# three minor versions back is as far as a server goes; rules written for it are checked with the
# functions that CEL had in the version before (KEP-4330, compatibility versions)
BACK = 3


@pytest.fixture
def older(control_plane: ControlPlane, launch_control_plane: Launcher) -> Kube:
    status, version = control_plane.request("GET", "/version")
    assert status == 200
    minor = int(re.match(r"\d+", version["minor"]).group())  # type: ignore[union-attr]
    flags = (f"--emulated-version={version['major']}.{minor - BACK}",)
    return Kube(launch_control_plane(controllers=False, api_flags=flags).kubeconfig)


def test_definitions_work_without_selectable_fields(older: Kube) -> None:
    for item in DEFINITIONS:
        crd = definition(item.stem.rpartition("_")[2])
        [version] = crd["spec"]["versions"]
        version.pop("selectableFields", None)  # as the chart does for older servers
        older.apply(crd)
        path = f"/apis/{crd['spec']['group']}/{version['name']}/{crd['spec']['names']['plural']}"
        wait_for(partial(is_served, older, path), 20, f"{path} is served")
    for spec in GOOD.values():
        older.apply(profile(spec), dry_run=True)
    for bad in BAD:
        with pytest.raises(ApiError) as refused:
            older.apply(profile(bad.spec), dry_run=True)
        assert bad.words in refused.value.message
    body, applied = report_of(finding_factory.finding_with_all_fields(1_700_000_000 * 10**9), "p")
    older.create(body)
    assert apply_status(older, applied)["status"] == applied["status"]


def is_served(kube: Kube, path: str) -> bool:
    try:
        return bool(kube.request("GET", path))
    except ApiError:
        return False
