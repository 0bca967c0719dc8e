"""Restrict who may read the metrics: TLS, client certificates and a bearer token, from a folder.

The folder is a mounted Secret.  Its files change while the process runs (cert-manager renews
certificates), so they are read again when they have changed.
"""

from __future__ import annotations

import hmac
import logging
import ssl
from dataclasses import dataclass
from errno import EINVAL
from pathlib import Path
from socket import socket

log = logging.getLogger(__name__)

# the names of the first two are those of a Secret of the type kubernetes.io/tls
CERTIFICATE, KEY = "tls.crt", "tls.key"
CLIENT_AUTHORITY, TOKEN = "client-ca.crt", "token"
_FILES = (CERTIFICATE, KEY, CLIENT_AUTHORITY, TOKEN)

_Stamp = tuple[int, int, int] | None  # inode, time of change and size of a file


@dataclass(frozen=True)
class Refusal:
    """Why a request gets no metrics, as an HTTP response."""

    status: str
    sentence: str
    headers: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class _Rules:
    context: ssl.SSLContext
    needs_certificate: bool
    token: bytes  # b"": none is required


_NO_CERTIFICATE = Refusal("403 Forbidden", "a client certificate is required")
# RFC 6750, section 3: a response 401 names the scheme
_NO_TOKEN = Refusal(
    "401 Unauthorized", "the bearer token is missing or wrong", (("WWW-Authenticate", "Bearer"),)
)


class HttpAccess:
    """Who may read metrics, by the files of a folder.

    ``tls.crt`` and ``tls.key`` are required: the server's certificate with its chain, and its key,
    in PEM.  With ``client-ca.crt`` clients need a certificate that this authority signed, and with
    ``token`` the content of this file as bearer token.  Files that changed and cannot be used are
    logged; the last ones stay in use.
    """

    def __init__(self, folder: Path) -> None:
        """Read the folder; raises ``OSError`` with a sentence for files that cannot be used."""
        self._folder = folder
        self._stamps = _stamps_of(folder)
        self._rules = _rules_of(folder)

    def secured(self, connection: socket) -> ssl.SSLSocket:
        """Return a connection of a client with TLS; its handshake has not begun."""
        self._refresh()
        return self._rules.context.wrap_socket(
            connection, server_side=True, do_handshake_on_connect=False
        )

    def refusal(self, authorization: str, has_certificate: bool) -> Refusal | None:
        """Return why a request gets no metrics; None if it does.

        ``authorization`` is the header of this name, ``has_certificate`` whether the handshake
        verified a certificate of the client.
        """
        rules = self._rules
        if rules.needs_certificate and not has_certificate:
            return _NO_CERTIFICATE
        if rules.token and not hmac.compare_digest(_bearer_token(authorization), rules.token):
            return _NO_TOKEN
        return None

    def _refresh(self) -> None:
        # before the files are read: if one changes meanwhile, the next connection reads it
        stamps = _stamps_of(self._folder)
        if stamps == self._stamps:
            return
        self._stamps = stamps
        try:
            self._rules = _rules_of(self._folder)
        except OSError as error:
            log.warning("the last certificate and token stay in use: %s", error.strerror)


def _stamps_of(folder: Path) -> tuple[_Stamp, ...]:
    return tuple(_stamp(folder / name) for name in _FILES)


def _stamp(file: Path) -> _Stamp:
    try:
        status = file.stat()
    except OSError:
        return None
    return status.st_ino, status.st_mtime_ns, status.st_size


def _rules_of(folder: Path) -> _Rules:
    """Return what the files demand; raises ``OSError`` with a sentence."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    try:
        # a key that needs a password would ask the terminal for it
        context.load_cert_chain(folder / CERTIFICATE, folder / KEY, password="")
    except OSError as error:
        wrong = f"{CERTIFICATE} and {KEY} are not a certificate in PEM with its key"
        raise _unusable(folder, wrong, error) from None
    authority = folder / CLIENT_AUTHORITY
    has_authority = authority.exists()
    if has_authority:
        _verify_clients(context, authority)
    return _Rules(context, has_authority, _token_of(folder / TOKEN))


def _verify_clients(context: ssl.SSLContext, authority: Path) -> None:
    """Let the context verify certificates of clients; one without is refused for metrics only."""
    try:
        context.load_verify_locations(authority)
    except OSError as error:
        raise _unusable(authority.parent, f"{authority.name} is no certificate", error) from None
    context.verify_mode = ssl.CERT_OPTIONAL  # probes of the kubelet have none


def _token_of(file: Path) -> bytes:
    """Return the token of a file, b"" if there is no file."""
    try:
        token = file.read_bytes().strip()
    except FileNotFoundError:
        return b""
    except OSError as error:
        raise _unusable(file.parent, f"{file.name} cannot be read", error) from None
    if not token:  # it would permit everybody
        raise OSError(EINVAL, f"{file.parent}: {file.name} is empty: write a token or remove it")
    return token


def _unusable(folder: Path, wrong: str, error: OSError) -> OSError:
    return OSError(EINVAL, f"{folder}: {wrong}: {error.strerror or error}")


def _bearer_token(authorization: str) -> bytes:
    scheme, _, token = authorization.partition(" ")
    return token.strip().encode(errors="replace") if scheme.lower() == "bearer" else b""
