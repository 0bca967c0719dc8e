"""Metrics by HTTPS: bearer tokens, certificates of clients, files that change or are wrong."""

from __future__ import annotations

import socket
import ssl
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry, Gauge

from reveal_contract.runtime import http_endpoints
from reveal_contract.runtime.http_access import HttpAccess
from support.certificates import Certificate
from support.dripping_client import closes_after_a_byte
from support.polling import wait_until
from support.restricted_metrics import TOKEN, RestrictedMetrics, client_of


@dataclass(frozen=True)
class Endpoint:
    """A port that is served by a folder."""

    given: RestrictedMetrics
    port: int

    @property
    def folder(self) -> Path:
        return self.given.folder

    def get(self, path: str, token: str = "", client: Certificate | None = None) -> tuple[int, str]:
        return self.given.get(self.port, path, token, client)


def served(folder: Path, **files: str) -> Endpoint:
    given, registry = RestrictedMetrics(folder, **files), CollectorRegistry()
    Gauge("reveal_thing", "A thing.", registry=registry).set(7)
    checks = (lambda: "", lambda: "not yet")
    port = http_endpoints.serve(registry, 0, *checks, access_folder=str(given.folder))
    return Endpoint(given, port)


def test_metrics_are_served_by_https_only(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    endpoint = served(tmp_path)
    status, text = endpoint.get("/metrics")
    assert (status, "reveal_thing 7.0" in text) == (200, True)
    with socket.create_connection(("127.0.0.1", endpoint.port), 10) as plain:
        plain.sendall(b"GET /metrics HTTP/1.0\r\n\r\n")
        assert b"reveal_thing" not in plain.recv(65_536)
    assert endpoint.get("/metrics")[0] == 200
    assert (caplog.text, capfd.readouterr().err) == ("", "")


@pytest.mark.filterwarnings("ignore:ssl.TLSVersion:DeprecationWarning")
def test_old_versions_of_tls_are_refused(tmp_path: Path) -> None:
    endpoint = served(tmp_path)
    context = ssl.create_default_context(cafile=endpoint.given.signed / "ca.crt")
    context.minimum_version = ssl.TLSVersion.TLSv1
    context.maximum_version = ssl.TLSVersion.TLSv1_1
    context.set_ciphers("ALL:@SECLEVEL=0")
    with (
        socket.create_connection(("127.0.0.1", endpoint.port), 10) as connection,
        pytest.raises(ssl.SSLError),
    ):
        context.wrap_socket(connection, server_hostname="127.0.0.1")


@pytest.mark.parametrize(
    "given", ["", TOKEN, f"Basic {TOKEN}", "Bearer", "Bearer ", f"Bearer {TOKEN}x", "Bearer \xff"]
)
def test_metrics_need_the_token(tmp_path: Path, given: str) -> None:
    endpoint = served(tmp_path, token=f"{TOKEN}\n")
    refused = (401, "the bearer token is missing or wrong\n")
    assert endpoint.get("/metrics", token=given) == refused


def test_the_token_permits_metrics_and_probes_need_none(tmp_path: Path) -> None:
    endpoint = served(tmp_path, token=f"{TOKEN}\n")
    assert endpoint.get("/metrics", token=f"Bearer {TOKEN}")[0] == 200
    assert endpoint.get("/metrics", token=f"bearer {TOKEN}")[0] == 200
    assert endpoint.get("/healthz") == (200, "ok\n")
    assert endpoint.get("/readyz") == (503, "not yet\n")


def test_a_refusal_names_the_scheme(tmp_path: Path) -> None:
    """RFC 6750, section 3."""
    refusal = HttpAccess(RestrictedMetrics(tmp_path, token=TOKEN).folder).refusal("", False)
    assert refusal is not None
    assert refusal.headers == (("WWW-Authenticate", "Bearer"),)


def test_metrics_need_a_certificate_of_the_clients_authority(tmp_path: Path) -> None:
    client = client_of(tmp_path / "client")
    endpoint = served(tmp_path, **{"client-ca.crt": client.authority.read_text()})
    assert endpoint.get("/metrics") == (403, "a client certificate is required\n")
    assert endpoint.get("/healthz")[0] == 200
    assert endpoint.get("/metrics", client=client)[0] == 200
    assert endpoint.get("/metrics", client=client_of(tmp_path / "stranger")) == (0, "")


def test_with_both_files_both_are_needed(tmp_path: Path) -> None:
    client = client_of(tmp_path / "client")
    files = {"client-ca.crt": client.authority.read_text(), "token": TOKEN}
    endpoint = served(tmp_path, **files)
    assert endpoint.get("/metrics", token=f"Bearer {TOKEN}")[0] == 403
    assert endpoint.get("/metrics", client=client)[0] == 401
    assert endpoint.get("/metrics", token=f"Bearer {TOKEN}", client=client)[0] == 200


def test_files_that_changed_are_used_by_the_next_connection(tmp_path: Path) -> None:
    endpoint = served(tmp_path, token="first")
    endpoint.given.renew()  # a client of the first authority would not trust the new certificate
    (endpoint.folder / "token").write_text("second-token")
    assert endpoint.get("/metrics", token="Bearer first")[0] == 401
    assert endpoint.get("/metrics", token="Bearer second-token")[0] == 200


def test_files_that_became_unusable_leave_the_last_files_in_use(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    endpoint = served(tmp_path, token=TOKEN)
    (endpoint.folder / "tls.crt").write_text("half of a certif")
    for _ in range(2):
        assert endpoint.get("/metrics", token=f"Bearer {TOKEN}")[0] == 200
    assert caplog.text.count("the last certificate and token stay in use") == 1
    endpoint.given.renew()
    assert endpoint.get("/metrics", token=f"Bearer {TOKEN}")[0] == 200


def test_a_client_that_does_not_begin_tls_blocks_nobody(tmp_path: Path) -> None:
    endpoint = served(tmp_path)
    with socket.create_connection(("127.0.0.1", endpoint.port)):
        assert endpoint.get("/metrics")[0] == 200


def test_a_client_that_drips_bytes_after_its_handshake_is_closed(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr(http_endpoints._Handler, "timeout", 1.0)
    endpoint = served(tmp_path)
    context = ssl.create_default_context(cafile=endpoint.given.signed / "ca.crt")
    with (
        socket.create_connection(("127.0.0.1", endpoint.port), 10) as connection,
        context.wrap_socket(connection, server_hostname="127.0.0.1") as client,
    ):
        wait_until(lambda: closes_after_a_byte(client), "the client is closed")
    assert (capfd.readouterr().err, caplog.text) == ("", "")


def encrypted_key(folder: Path) -> None:
    key = folder / "tls.key"
    subprocess.run(
        ["openssl", "ec", "-in", key, "-aes256", "-passout", "pass:secret", "-out", key],
        check=True, capture_output=True,
    )  # fmt: skip


def test_a_key_with_a_password_is_refused_and_not_asked_for(tmp_path: Path) -> None:
    folder = RestrictedMetrics(tmp_path).folder
    encrypted_key(folder)
    with pytest.raises(OSError, match=r"tls.crt and tls.key are not a certificate in PEM"):
        HttpAccess(folder)


@pytest.mark.parametrize(
    ("name", "content", "sentence"),
    [
        ("tls.crt", None, "tls.crt and tls.key are not a certificate in PEM with its key: No such"),
        ("tls.key", None, "tls.crt and tls.key are not a certificate in PEM with its key: No such"),
        ("tls.key", "no key", "tls.crt and tls.key are not a certificate in PEM with its key"),
        ("client-ca.crt", "", "client-ca.crt is no certificate"),
        ("token", " \n", "token is empty: write a token or remove it"),
    ],
)
def test_unusable_files_are_a_sentence(
    tmp_path: Path, name: str, content: str | None, sentence: str
) -> None:
    folder = RestrictedMetrics(tmp_path).folder
    (folder / name).unlink(missing_ok=True)
    if content is not None:
        (folder / name).write_text(content)
    with pytest.raises(OSError, match="access: ") as refused:
        http_endpoints.serve(CollectorRegistry(), 0, access_folder=str(folder))
    assert sentence in refused.value.strerror
