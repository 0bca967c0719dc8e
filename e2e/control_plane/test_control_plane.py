"""The control plane is a real one: it authorizes, keeps what it stored, and cleans up."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from cluster import binaries
from cluster.daemons import Daemon, StartError
from cluster.plane import ControlPlane
from support.api_server import ApiError, Kube, Launcher, unique, wait_for

RBAC = "rbac.authorization.k8s.io/v1"


def settings(name: str, namespace: str, **labels: str) -> dict[str, Any]:
    about = {"name": name, "namespace": namespace, "labels": labels}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": about, "data": {"a": "1"}}


def account(kube: Kube, namespace: str) -> str:
    name = unique("robot")
    about = {"name": name, "namespace": namespace}
    kube.create({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": about})
    return name


def allow(kube: Kube, namespace: str, name: str, resource: str, *verbs: str) -> None:
    about = {"name": name, "namespace": namespace}
    rules = [{"apiGroups": [""], "resources": [resource], "verbs": list(verbs)}]
    kube.create({"apiVersion": RBAC, "kind": "Role", "metadata": about, "rules": rules})
    kube.create(
        {
            "apiVersion": RBAC,
            "kind": "RoleBinding",
            "metadata": about,
            "roleRef": {"apiGroup": RBAC.split("/", maxsplit=1)[0], "kind": "Role", "name": name},
            "subjects": [{"kind": "ServiceAccount", "name": name, "namespace": namespace}],
        }
    )


def test_the_server_has_the_pinned_version(kube: Kube) -> None:
    assert kube.request("GET", "/version")["gitVersion"] == binaries.cache().name


def test_a_service_account_may_do_nothing_until_it_is_allowed(
    control_plane: ControlPlane, kube: Kube, namespace: str
) -> None:
    name = account(kube, namespace)
    robot = Kube(control_plane.account_kubeconfig(namespace, name))
    with pytest.raises(ApiError) as refused:
        robot.items("v1", "ConfigMap", namespace)
    assert refused.value.status == 403
    assert f"system:serviceaccount:{namespace}:{name}" in refused.value.message

    allow(kube, namespace, name, "configmaps", "list")
    # the authorizer watches its rules
    wait_for(lambda: _may_list(robot, namespace), 5, "the role counts")
    with pytest.raises(ApiError) as refused:
        robot.create(settings("mine", namespace))
    assert refused.value.status == 403


def _may_list(robot: Kube, namespace: str) -> bool:
    try:
        robot.items("v1", "ConfigMap", namespace)
    except ApiError as error:
        assert error.status == 403
        return False
    return True


def test_requests_are_audited_with_verb_and_account(
    control_plane: ControlPlane, kube: Kube, namespace: str
) -> None:
    name = account(kube, namespace)
    robot = Kube(control_plane.account_kubeconfig(namespace, name))
    with pytest.raises(ApiError):
        robot.items("v1", "ConfigMap", namespace)
    user = f"system:serviceaccount:{namespace}:{name}"

    def of_robot() -> list[dict[str, Any]]:
        events = (item for item in control_plane.audited() if item["user"]["username"] == user)
        return [
            event for event in events if event.get("objectRef", {}).get("resource") == "configmaps"
        ]

    event = wait_for(of_robot, 5, "the request in the log")[0]
    assert (event["verb"], event["responseStatus"]["code"]) == ("list", 403)


def test_a_restart_and_a_crash_keep_what_was_stored(launch_control_plane: Launcher) -> None:
    plane = launch_control_plane(controllers=False)
    kube = Kube(plane.kubeconfig)
    for break_it in (plane.restart, lambda: (plane.kill(), plane.resume())):
        name = unique("kept")
        kube.create(settings(name, "default"))
        before = plane.api.pid
        break_it()
        assert plane.api.pid not in (0, before)
        kept = kube.get("v1", "ConfigMap", name, "default")
        assert kept is not None
        assert kept["data"] == {"a": "1"}


def test_a_client_gets_an_error_while_the_server_is_down(launch_control_plane: Launcher) -> None:
    plane = launch_control_plane(controllers=False)
    kube = Kube(plane.kubeconfig)
    plane.kill()
    assert not plane.is_ready()
    with pytest.raises(ConnectionError):
        kube.items("v1", "Namespace")


def test_owned_objects_and_namespaces_are_garbage_collected(kube: Kube, namespace: str) -> None:
    owner = kube.create(settings("owner", namespace))
    child = settings("child", namespace)
    child["metadata"]["ownerReferences"] = [
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "name": "owner",
            "uid": owner["metadata"]["uid"],
        }
    ]
    kube.create(child)
    kube.create(settings("other", namespace))
    kube.delete(owner)
    wait_for(
        lambda: kube.get("v1", "ConfigMap", "child", namespace) is None, 30, "the child is gone"
    )
    assert kube.get("v1", "ConfigMap", "other", namespace) is not None
    kube.delete({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}})
    wait_for(lambda: kube.get("v1", "Namespace", namespace) is None, 30, "the namespace is gone")


def test_apply_is_strict_and_idempotent(kube: Kube, namespace: str) -> None:
    first = kube.apply(settings("one", namespace))[0]
    again = kube.apply(settings("one", namespace))[0]
    assert first["metadata"]["resourceVersion"] == again["metadata"]["resourceVersion"]
    with pytest.raises(ApiError, match=r"unknown field|field not declared"):
        kube.apply({**settings("one", namespace), "datum": {}})


def test_a_server_that_cannot_start_gives_the_reason(tmp_path: Path) -> None:
    etcd = binaries.find()["etcd"]
    server = Daemon("etcd", (etcd, "--no-such-flag"), tmp_path / "log")
    server.start()
    with pytest.raises(StartError, match="no-such-flag"):
        server.wait_until(lambda: False, 20)


_PARENT = """
import sys, time
from pathlib import Path
from cluster.daemons import Daemon
child = Daemon("sleep", ("sleep", "600"), Path(sys.argv[1]))
child.start()
print(child.pid, flush=True)
time.sleep(600)
"""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_servers_end_with_their_parent(tmp_path: Path, number: signal.Signals) -> None:
    folder = Path(binaries.__file__).parent.parent
    parent = subprocess.Popen(
        [sys.executable, "-c", _PARENT, str(tmp_path / "log")],
        env={**os.environ, "PYTHONPATH": str(folder)},
        stdout=subprocess.PIPE,
        text=True,
    )
    assert parent.stdout is not None
    child = int(parent.stdout.readline())
    comm = Path(f"/proc/{child}/comm")
    wait_for(lambda: comm.read_text() == "sleep\n", 5, "the program itself")
    parent.send_signal(number)
    parent.wait(10)
    wait_for(lambda: _is_gone(child), 5, "the child's end")


def _is_gone(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return True
    return state == "Z"
