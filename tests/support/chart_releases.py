"""Releases of the chart on a real control plane, with the operator as a process beside it.

There is no kubelet, so the operator is run by hand: with the flags of its Deployment and the
token of its ServiceAccount, so that it has the chart's rights and no others.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from cluster.daemons import Daemon
from cluster.plane import ControlPlane
from reveal_contract.kube.names import API_VERSION, LABEL_PROFILE, PROFILE_KIND
from support.api_server import Kube, wait_for
from support.helm_chart import CHART, NAMESPACE, Helm, HelmError, Object

DEFINITIONS = ("revealprofiles.reveal.dev", "anomalyreports.reveal.dev")
_CRD = ("apiextensions.k8s.io/v1", "CustomResourceDefinition")
_RBAC = "rbac.authorization.k8s.io/v1"
# nothing in these tests takes more than a few seconds: who waits longer hangs
PATIENCE_S = 90.0
CHILDREN = (("apps/v1", "DaemonSet"), ("apps/v1", "Deployment"), ("v1", "ConfigMap"))


class Cluster:
    """A control plane, and Helm as its administrator."""

    def __init__(self, plane: ControlPlane, program: Path, folder: Path) -> None:
        self.plane = plane
        self.folder = folder
        self.kube = Kube(plane.kubeconfig)
        self.helm = Helm(program, folder, plane.kubeconfig)

    def upgrade(self, *flags: str | Path, chart: Path = CHART) -> str:
        """Install or upgrade the release ``reveal``; what Helm says."""
        answer = self.helm(
            "upgrade", "reveal", chart, "--install", "--namespace", NAMESPACE,
            "--create-namespace", *flags,
        )  # fmt: skip
        for name in filter(self.definition, DEFINITIONS):  # Helm does not wait for them
            self.kube.await_served(name)
        return answer

    def uninstall(self) -> str:
        return self.helm("uninstall", "reveal", "--namespace", NAMESPACE)

    def definition(self, name: str) -> Object | None:
        return self.kube.get(*_CRD, name)

    def profile(self, name: str) -> Object | None:
        """The profile; None also where the kind itself is not served."""
        if self.definition(DEFINITIONS[0]) is None:
            return None
        return self.kube.get(API_VERSION, PROFILE_KIND, name)

    def apply_profile(self, name: str, **spec: object) -> None:
        about = {"name": name}
        body = {"apiVersion": API_VERSION, "kind": PROFILE_KIND, "metadata": about, "spec": spec}
        self.kube.apply(body)

    def children(self, profile: str) -> set[tuple[str, str]]:
        """What there is of a profile in the release's namespace."""
        return {
            (kind, each["metadata"]["name"])
            for version, kind in CHILDREN
            for each in self.kube.items(version, kind, NAMESPACE, f"{LABEL_PROFILE}={profile}")
        }

    def delete_profile(self, name: str) -> None:
        if self.definition(DEFINITIONS[0]) is not None:
            self.kube.delete(_named(API_VERSION, PROFILE_KIND, name))

    def delete_definitions(self) -> None:
        for name in DEFINITIONS:
            self.kube.delete(_named(*_CRD, name))

    def delete_namespace(self) -> None:
        self.kube.delete(_named("v1", "Namespace", NAMESPACE))

    def has_namespace(self) -> bool:
        return self.kube.get("v1", "Namespace", NAMESPACE) is not None

    def await_no_definitions(self) -> None:
        """Both definitions are gone; else an AssertionError with the status of what is left."""

        def gone() -> bool:
            found = {name: self.definition(name) for name in DEFINITIONS}
            left = {name: each["status"] for name, each in found.items() if each is not None}
            assert not left, left
            return True

        wait_for(gone, PATIENCE_S, "the definitions are gone")

    def await_nothing_left(self) -> None:
        """Definitions, namespace and what is cluster-wide of a release are gone."""
        self.await_no_definitions()
        wait_for(lambda: not self.has_namespace(), PATIENCE_S, "the namespace is gone")

    def wipe(self) -> None:
        """Everything of Reveal, whatever state a test left it in."""
        try:
            self.uninstall()
        except HelmError:
            for kind in ("ClusterRole", "ClusterRoleBinding"):
                for each in self.kube.items(_RBAC, kind, labels="app.kubernetes.io/name=reveal"):
                    self.kube.delete(each)
        self.delete_definitions()
        self.delete_namespace()
        self.await_nothing_left()

    def operator_flags(self) -> list[str]:
        """The flags of the operator in the release's Deployment."""
        [container] = self._operator_pod()["containers"]
        return [flag.replace("$(REVEAL_NAMESPACE)", NAMESPACE) for flag in container["args"]]

    def _operator_pod(self) -> Object:
        deployment = self.kube.get("apps/v1", "Deployment", "reveal-operator", NAMESPACE)
        assert deployment is not None
        pod: Object = deployment["spec"]["template"]["spec"]
        return pod

    @contextmanager
    def operator(self, *more: str) -> Iterator[Daemon]:
        """The operator, as the release's Deployment would run it; ``more`` flags win."""
        account = self._operator_pod()["serviceAccountName"]
        kubeconfig = self.plane.account_kubeconfig(NAMESPACE, account)
        flags = (*self.operator_flags(), *more)
        daemon = Daemon(
            "reveal-operator",
            (sys.executable, "-m", "reveal_operator", "--kubeconfig", kubeconfig, *flags),
            self.folder / "operator.log",
        )
        daemon.log.write_text("")
        daemon.start()
        try:
            yield daemon
        finally:
            daemon.stop()


def _named(api_version: str, kind: str, name: str) -> Object:
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": name}}
