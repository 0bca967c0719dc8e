"""The keys and certificates of one control plane, made by the ``openssl`` command (3.0 or newer).

What each is for: "PKI certificates and requirements" of the Kubernetes documentation. All are of
one authority that lives as long as the control plane's folder.
"""

from __future__ import annotations

import base64
import json
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cluster.daemons import StartError

_DAYS = "30"
_KEY = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes")
# key identifiers and usages in full: Python 3.13 refuses chains without them (VERIFY_X509_STRICT)
_EXTENSIONS = """\
[req]
distinguished_name = name
prompt = no
[name]
CN = reveal
[authority]
basicConstraints = critical, CA:TRUE
keyUsage = critical, keyCertSign, cRLSign
subjectKeyIdentifier = hash
[server]
basicConstraints = critical, CA:FALSE
keyUsage = critical, digitalSignature
extendedKeyUsage = serverAuth
authorityKeyIdentifier = keyid
subjectAltName = {names}
[client]
basicConstraints = critical, CA:FALSE
keyUsage = critical, digitalSignature
extendedKeyUsage = clientAuth
authorityKeyIdentifier = keyid
"""
_API_NAMES = (
    "DNS:localhost", "DNS:kubernetes", "DNS:kubernetes.default", "DNS:kubernetes.default.svc",
    "DNS:kubernetes.default.svc.cluster.local", "IP:127.0.0.1",
)  # fmt: skip


@dataclass(frozen=True)
class Certificates:
    """Where the files are: ``NAME.crt`` and ``NAME.key`` for each certificate."""

    folder: Path

    @property
    def authority(self) -> Path:
        """Whom clients and server trust."""
        return self.folder / "authority.crt"

    @property
    def account_key(self) -> Path:
        """Signs the tokens of service accounts."""
        return self.folder / "accounts.key"

    @property
    def account_public(self) -> Path:
        """Checks them."""
        return self.folder / "accounts.pub"

    def certificate(self, name: str) -> Path:
        return self.folder / f"{name}.crt"

    def key(self, name: str) -> Path:
        return self.folder / f"{name}.key"

    def client(self, name: str) -> dict[str, str]:
        """What a kubeconfig says of a user with a certificate."""
        return {
            "client-certificate-data": _encoded(self.certificate(name)),
            "client-key-data": _encoded(self.key(name)),
        }

    def issue(self, name: str, subject: str) -> dict[str, str]:
        """A further client: ``/O=GROUP/CN=USER``; what a kubeconfig says of it."""
        if not self.certificate(name).exists():
            _certificate(self, name, subject, "client")
        return self.client(name)

    def issue_server(self, name: str, *names: str) -> None:
        """A further server: ``DNS:name``, ``IP:address``."""
        if self.certificate(name).exists():
            return
        settings = self.folder / f"{name}.cnf"
        settings.write_text(_EXTENSIONS.format(names=", ".join(names)))
        _certificate(self, name, f"/CN={name}", "server", settings.name)


def make(folder: Path, *addresses: str) -> Certificates:
    """Everything a control plane needs; what is in ``folder`` already stays.

    ``addresses``: further addresses of the API server.
    """
    if shutil.which("openssl") is None:
        raise StartError("no openssl command: install it (Debian, Ubuntu: apt install openssl)")
    folder.mkdir(parents=True, exist_ok=True)
    certificates = Certificates(folder)
    if certificates.account_public.exists():
        return certificates
    names = ", ".join((*_API_NAMES, *(f"IP:{address}" for address in addresses)))
    (folder / "openssl.cnf").write_text(_EXTENSIONS.format(names=names))
    _certificate(certificates, "authority", "/CN=reveal-test-authority", "authority")
    _certificate(certificates, "server", "/CN=kube-apiserver", "server")
    _certificate(certificates, "admin", "/O=system:masters/CN=admin", "client")
    _certificate(certificates, "controllers", "/CN=system:kube-controller-manager", "client")
    _openssl(
        folder, "genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256",
        "-out", certificates.account_key.name,
    )  # fmt: skip
    _openssl(
        folder,
        "pkey",
        "-in",
        certificates.account_key.name,
        "-pubout",
        "-out",
        certificates.account_public.name,
    )
    return certificates


def kubeconfig(url: str, authority: Path, user: dict[str, Any], namespace: str = "default") -> str:
    """A kubeconfig as JSON, which is YAML too; all data is in it, so it can be moved."""
    named = {
        "clusters": {"cluster": {
            "server": url, "certificate-authority-data": _encoded(authority),
        }},
        "users": {"user": user},
        "contexts": {"context": {"cluster": "reveal", "user": "reveal", "namespace": namespace}},
    }  # fmt: skip
    content: dict[str, Any] = {key: [{"name": "reveal", **item}] for key, item in named.items()}
    return json.dumps(
        {"apiVersion": "v1", "kind": "Config", "current-context": "reveal", **content}
    )


def _certificate(
    certificates: Certificates,
    name: str,
    subject: str,
    extensions: str,
    settings: str = "openssl.cnf",
) -> None:
    issuer = () if name == "authority" else ("-CA", "authority.crt", "-CAkey", "authority.key")
    _openssl(
        certificates.folder, "req", "-x509", *_KEY, "-keyout", f"{name}.key", "-out", f"{name}.crt",
        "-days", _DAYS, "-subj", subject, "-config", settings, "-extensions", extensions,
        *issuer,
    )  # fmt: skip


def _openssl(folder: Path, *arguments: str) -> None:
    done = subprocess.run(
        ["openssl", *arguments], cwd=folder, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise StartError(f"openssl {arguments[0]} failed: {done.stderr.strip()}")


def _encoded(path: Path) -> str:
    return base64.b64encode(path.read_bytes()).decode()
