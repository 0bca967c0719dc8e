"""etcd, the API server and the controllers of Kubernetes on loopback, with RBAC on.

There are no kubelets and no scheduler: nodes are objects, pods of a DaemonSet stay Pending. What
is tested against it meets the real schema checks, authorizer, garbage collector and watches.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import ssl
import tempfile
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cluster import binaries, certificates
from cluster.binaries import Binaries
from cluster.daemons import Daemon, free_ports
from cluster.network import LOOPBACK, Network

HOST = LOOPBACK.api
_ISSUER = "https://kubernetes.default.svc"
_START_S = 60.0
_STOP_S = 5.0  # an API server waits for its watches, which end only when their clients do
# every request when it is answered, a watch also when it ends; bodies are left out
_AUDIT_POLICY = {
    "apiVersion": "audit.k8s.io/v1",
    "kind": "Policy",
    "omitStages": ["RequestReceived"],
    "rules": [{"level": "Metadata"}],
}
# without kubelets it would call nodes lost, and delete what is on them
_NODE_CONTROLLER = "-node-lifecycle-controller"


@dataclass(frozen=True)
class Options:
    """How a control plane is set up.

    ``controllers``: garbage collection, DaemonSets, Deployments, namespaces' deletion, default
    service accounts. Without them pods need no service account. ``audit``: keep a log of all
    requests (``ControlPlane.audited``). ``api_flags``: further flags of kube-apiserver.
    ``network``: where it listens, and the addresses of services.
    """

    controllers: bool = True
    audit: bool = False
    event_ttl: str = "1h"
    api_flags: tuple[str, ...] = ()
    network: Network = LOOPBACK


class ControlPlane:
    """A running control plane; use it through ``running``."""

    def __init__(self, programs: Binaries, folder: Path, options: Options) -> None:
        self.programs = programs
        self.folder = folder
        self.options = options
        network = options.network
        self.certificates = certificates.make(
            folder / "certificates", network.api, network.service(1)
        )
        self._etcd_port, peers, self.port = free_ports(3)
        self.url = f"https://{network.api}:{self.port}"
        self.kubeconfig = self.config("admin", self.certificates.client("admin"))
        self.etcd = self._daemon("etcd", *_etcd_flags(folder, self._etcd_port, peers))
        self.api = self._daemon("kube-apiserver", *self._api_flags())
        self.controllers: Daemon | None = None
        if options.controllers:
            self.controllers = self._daemon("kube-controller-manager", *self._controller_flags())

    @property
    def authority(self) -> Path:
        """The certificate that clients must trust."""
        return self.certificates.authority

    def start(self) -> None:
        """Start everything and return when it is ready; ``StartError`` says what is not."""
        self.etcd.start()
        self.etcd.wait_until(self._etcd_answers, _START_S)
        self.resume()
        if self.controllers is not None:
            self.controllers.start()
            self.controllers.wait_until(self._controllers_work, _START_S)

    def stop(self) -> None:
        """End everything at once: what it stored is thrown away anyway."""
        for item in (self.controllers, self.api, self.etcd):
            if item is not None:
                item.kill()

    def kill(self) -> None:
        """The API server crashes; what it has stored stays."""
        self.api.kill()

    def resume(self) -> None:
        """Start the API server, on the port it had, and wait until it is ready."""
        self.api.start()
        self.api.wait_until(self.is_ready, _START_S)

    def restart(self) -> None:
        """End the API server politely, as an upgrade does, and start it again."""
        self.api.stop(_STOP_S)
        self.resume()

    def is_ready(self) -> bool:
        """Whether the API server says that it is ready."""
        try:
            return self.request("GET", "/readyz")[0] == http.client.OK
        except (OSError, http.client.HTTPException):
            return False

    def request(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> _Answer:
        """One request of the administrator: status and what the JSON or text of the answer is."""
        context = ssl.create_default_context(cafile=str(self.authority))
        admin = self.certificates
        context.load_cert_chain(admin.certificate("admin"), admin.key("admin"))
        with contextlib.closing(
            http.client.HTTPSConnection(
                self.options.network.api, self.port, timeout=10, context=context
            )
        ) as connection:
            data = None if body is None else json.dumps(body)
            connection.request(method, path, data, {"Content-Type": "application/json"})
            answer = connection.getresponse()
            text = answer.read().decode()
        is_json = "json" in (answer.getheader("Content-Type") or "")
        return answer.status, json.loads(text) if is_json else text

    def token(self, namespace: str, name: str, seconds: int = 3600) -> str:
        """A token of a service account that exists, as the kubelet asks for one (TokenRequest)."""
        path = f"/api/v1/namespaces/{namespace}/serviceaccounts/{name}/token"
        body = {
            "apiVersion": "authentication.k8s.io/v1",
            "kind": "TokenRequest",
            "spec": {"expirationSeconds": seconds},
        }
        status, answer = self.request("POST", path, body)
        if status >= http.client.BAD_REQUEST:
            raise LookupError(f"no token for {namespace}/{name}: {answer.get('message', answer)}")
        token: str = answer["status"]["token"]
        return token

    def account_kubeconfig(self, namespace: str, name: str) -> Path:
        """A kubeconfig of a service account: what uses it has that account's rights alone."""
        user = {"token": self.token(namespace, name)}
        return self.config(f"{namespace}.{name}", user, namespace)

    def audited(self) -> list[dict[str, Any]]:
        """Every request answered so far, oldest first (audit.k8s.io/v1 Event)."""
        lines = (self.folder / "audit.log").read_text().splitlines(keepends=True)
        # the last line may still be being written
        return [json.loads(line) for line in lines if line.endswith("\n")]

    def _daemon(self, name: str, *flags: str) -> Daemon:
        return Daemon(name, (self.programs[name], *flags), self.folder / f"{name}.log")

    def config(self, name: str, user: dict[str, Any], namespace: str = "default") -> Path:
        """A kubeconfig in the control plane's folder."""
        path = self.folder / f"{name}.kubeconfig"
        path.touch(mode=0o600)  # helm warns of one that others may read
        path.write_text(certificates.kubeconfig(self.url, self.authority, user, namespace))
        return path

    def _api_flags(self) -> list[str]:
        files, network = self.certificates, self.options.network
        flags = [
            f"--etcd-servers=http://{HOST}:{self._etcd_port}",
            f"--bind-address={network.api}", f"--advertise-address={network.api}",
            f"--secure-port={self.port}", *self._node_flags(),
            f"--service-cluster-ip-range={network.services}.0/24",
            "--authorization-mode=Node,RBAC",
            "--allow-privileged=true",
            f"--client-ca-file={files.authority}",
            f"--tls-cert-file={files.certificate('server')}",
            f"--tls-private-key-file={files.key('server')}",
            f"--service-account-issuer={_ISSUER}",
            f"--service-account-key-file={files.account_public}",
            f"--service-account-signing-key-file={files.account_key}",
            f"--event-ttl={self.options.event_ttl}",
        ]  # fmt: skip
        if not self.options.controllers:
            flags.append("--disable-admission-plugins=ServiceAccount")
        if self.options.audit:
            policy = self.folder / "audit-policy.json"
            policy.write_text(json.dumps(_AUDIT_POLICY))
            flags += [
                f"--audit-policy-file={policy}",
                f"--audit-log-path={self.folder / 'audit.log'}",
            ]
        return [*flags, *self.options.api_flags]

    def _node_flags(self) -> list[str]:
        if not self.options.network.has_nodes:
            return ["--endpoint-reconciler-type=none"]  # loopback is no address of a Service
        files = self.certificates
        files.issue("kubelet-client", "/O=system:masters/CN=kubelet-client")
        return [
            f"--kubelet-client-certificate={files.certificate('kubelet-client')}",
            f"--kubelet-client-key={files.key('kubelet-client')}",
            f"--kubelet-certificate-authority={files.authority}",
            "--kubelet-preferred-address-types=InternalIP",
            "--enable-admission-plugins=NodeRestriction",
            # there is no kube-proxy beside the API server: webhooks are called at their pods
            "--enable-aggregator-routing=true",
        ]

    def _controller_flags(self) -> list[str]:
        files = self.certificates
        config = self.config("controllers", files.client("controllers"))
        has_nodes = self.options.network.has_nodes
        return [
            f"--kubeconfig={config}",
            "--secure-port=0",  # serves nothing
            "--leader-elect=false",
            "--use-service-account-credentials=true",
            f"--service-account-private-key-file={files.account_key}",
            f"--root-ca-file={files.authority}",
            f"--controllers=*{'' if has_nodes else ',' + _NODE_CONTROLLER}",
        ]

    def _etcd_answers(self) -> bool:
        url = f"http://{HOST}:{self._etcd_port}/health"
        try:
            with urllib.request.urlopen(url, timeout=2) as answer:
                return bool(json.load(answer)["health"] == "true")
        except (OSError, ValueError, http.client.HTTPException):
            return False

    def _controllers_work(self) -> bool:
        path = "/api/v1/namespaces/default/serviceaccounts/default"
        return self.request("GET", path)[0] == http.client.OK


_Answer = tuple[int, Any]


@contextmanager
def running(options: Options | None = None) -> Iterator[ControlPlane]:
    """A control plane of its own in a temporary folder; nothing of it is left afterwards."""
    chosen = options or Options()
    with tempfile.TemporaryDirectory(prefix="reveal-control-plane-") as folder:
        plane = ControlPlane(binaries.find(), Path(folder), chosen)
        try:
            plane.start()
            yield plane
        finally:
            plane.stop()


def _etcd_flags(folder: Path, clients: int, peers: int) -> list[str]:
    return [
        f"--data-dir={folder / 'etcd'}", "--name=reveal",
        f"--listen-client-urls=http://{HOST}:{clients}",
        f"--advertise-client-urls=http://{HOST}:{clients}",
        f"--listen-peer-urls=http://{HOST}:{peers}",
        f"--initial-advertise-peer-urls=http://{HOST}:{peers}",
        f"--initial-cluster=reveal=http://{HOST}:{peers}",
        "--unsafe-no-fsync",  # what is lost with the machine need not be kept
        "--log-level=warn",
    ]  # fmt: skip
