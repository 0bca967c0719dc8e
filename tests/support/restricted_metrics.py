"""Metrics that only some may read: a folder as the Secret is mounted, and clients with HTTPS."""

from __future__ import annotations

import shutil
import ssl
from pathlib import Path

from support import certificates
from support.certificates import Certificate
from support.component_processes import answer

TOKEN = "a-token-of-the-metrics"


class RestrictedMetrics:
    """The folder, with a certificate and what else a test puts there."""

    def __init__(self, folder: Path, **files: str) -> None:
        self.folder, self.signed = folder / "access", folder / "signed"
        for each in (self.folder, self.signed):
            each.mkdir()
        self.renew()
        for name, content in files.items():
            (self.folder / name).write_text(content)

    def renew(self) -> None:
        """Write another certificate, by another authority."""
        files = certificates.on_loopback(self.signed)
        shutil.copy(files.certificate, self.folder / "tls.crt")
        shutil.copy(files.key, self.folder / "tls.key")

    def get(
        self, port: int, path: str, token: str = "", client: Certificate | None = None
    ) -> tuple[int, str]:
        """Status and text of a GET by somebody who trusts the newest authority; 0 for no server."""
        context = ssl.create_default_context(cafile=self.signed / "ca.crt")
        if client is not None:
            context.load_cert_chain(client.certificate, client.key)
        headers = {"Authorization": token} if token else {}
        return answer(port, path, context=context, headers=headers)


def client_of(folder: Path) -> Certificate:
    """A client's certificate, by an authority of its own."""
    folder.mkdir()
    return certificates.signed(folder, "DNS:prometheus")
