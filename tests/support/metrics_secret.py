"""The Secret of the chart's ``metrics.access`` on a real cluster, and scrapes of pods."""

from __future__ import annotations

import secrets
import socket
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from support.api_server import Kube
from support.certificates import Certificate, signed
from support.helm_chart import NAMESPACE

SECRET = "reveal-metrics"
_SERVER = "reveal"  # in the certificate: pods are scraped by their addresses


@dataclass(frozen=True)
class MetricsSecret:
    """The token, and who signed the certificate."""

    certificate: Certificate
    token: str

    def scrape(self, address: str, port: int, token: str = "") -> bytes:
        """What a pod answers to a scrape by HTTPS."""
        context = ssl.create_default_context(cafile=self.certificate.authority)
        with (
            socket.create_connection((address, port), 10) as plain,
            context.wrap_socket(plain, server_hostname=_SERVER) as connection,
        ):
            login = f"Authorization: Bearer {token}\r\n" if token else ""
            connection.sendall(f"GET /metrics HTTP/1.0\r\n{login}\r\n".encode())
            return b"".join(iter(lambda: connection.recv(65_536), b""))


@contextmanager
def metrics_secret(kube: Kube, folder: Path) -> Iterator[MetricsSecret]:
    """Until it is left."""
    certificate, token = signed(folder, f"DNS:{_SERVER}"), secrets.token_hex()
    manifest = {
        "apiVersion": "v1", "kind": "Secret",
        "metadata": {"name": SECRET, "namespace": NAMESPACE},
        "stringData": {
            "tls.crt": certificate.certificate.read_text(), "tls.key": certificate.key.read_text(),
            "token": token,
        },
    }  # fmt: skip
    kube.apply(manifest)
    try:
        yield MetricsSecret(certificate, token)
    finally:
        kube.delete(manifest)
