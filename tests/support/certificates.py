"""Certificates of a server, made by openssl for a test."""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

_KEY = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes")


@dataclass(frozen=True)
class Certificate:
    """Files in PEM: who signed, the certificate and its key."""

    authority: Path
    certificate: Path
    key: Path


def on_loopback(folder: Path) -> Certificate:
    return signed(folder, "IP:127.0.0.1", "DNS:localhost")


def signed(folder: Path, *names: str) -> Certificate:
    """By an authority of its own, good for these names (``DNS:example.com``) for a day."""
    if shutil.which("openssl") is None:
        pytest.skip("no openssl on PATH")
    files = Certificate(folder / "ca.crt", folder / "server.crt", folder / "server.key")
    _openssl(
        "req", "-x509", *_KEY, "-days", "1", "-subj", "/CN=an authority of a test",
        "-keyout", folder / "ca.key", "-out", files.authority,
    )  # fmt: skip
    request, extension = folder / "server.csr", folder / "server.ext"
    _openssl("req", *_KEY, "-subj", "/CN=a server", "-keyout", files.key, "-out", request)
    extension.write_text(f"subjectAltName={','.join(names)}\n")
    _openssl(
        "x509", "-req", "-in", request, "-CA", files.authority, "-CAkey", folder / "ca.key",
        "-CAcreateserial", "-days", "1", "-extfile", extension, "-out", files.certificate,
    )  # fmt: skip
    return files


def _openssl(*arguments: str | Path) -> None:
    subprocess.run(["openssl", *map(str, arguments)], check=True, capture_output=True)
