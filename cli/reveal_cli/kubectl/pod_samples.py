"""The samples of a finding, from an analyzer of its profile through the API server."""

from __future__ import annotations

import socket
from http.client import HTTPException, HTTPResponse

from reveal_cli.errors import CliError
from reveal_cli.kubectl.cluster import Requests
from reveal_cli.kubectl.reports import ClusterReport
from reveal_contract.foreign_names import printable
from reveal_contract.kube.errors import FORBIDDEN, ApiError
from reveal_contract.kube.names import (
    ANALYZER,
    EVIDENCE_PORT,
    LABEL_COMPONENT,
    LABEL_PROFILE,
    clipped,
    label_value,
)
from reveal_contract.kube.paths import path

DEFAULT_NAMESPACE = "reveal-system"
ROLE = "reveal-evidence"
_MOST_BYTES = 4 << 20
_MAX_REASON = 300


def samples_of(requests: Requests, item: ClusterReport, namespace: str) -> bytes:
    """Return the recording of a report's finding; raises ``CliError`` with what to do.

    ``namespace`` is that of the analyzers.
    """
    ref = item.finding.evidence_ref
    if ref is None:
        raise CliError(
            f"no samples are kept of report {item.name}: see spec.evidence of profile"
            f" {item.report.identity.profile}, and its condition Degraded"
        )
    problem = ""
    for pod in _analyzers(requests, item.report.identity.profile, namespace):
        try:
            with requests.forwarded(
                path("Pod", namespace, pod, "portforward"), EVIDENCE_PORT
            ) as connection:
                return _get(connection, ref.name)
        except ApiError as error:
            if error.status == FORBIDDEN:
                raise _forbidden("forward ports of pods", namespace) from None
            problem = printable(clipped(error.message, _MAX_REASON))
        except (OSError, HTTPException) as error:
            problem = f"{type(error).__name__}: {printable(clipped(str(error), _MAX_REASON))}"
    raise CliError(f"no analyzer of the profile gives the samples of {ref.name}: {problem}")


def _analyzers(requests: Requests, profile: str, namespace: str) -> list[str]:
    """Return the names of the running analyzers of a profile."""
    labels = f"{LABEL_COMPONENT}={ANALYZER},{LABEL_PROFILE}={label_value(profile)}"
    try:
        pages = list(requests.pages(path("Pod", namespace), query=[("labelSelector", labels)]))
    except ApiError as error:
        if error.status == FORBIDDEN:
            raise _forbidden("list pods", namespace) from None
        reason = printable(clipped(error.message, _MAX_REASON))
        raise CliError(f"the API server {requests.server} does not list pods: {reason}") from None
    found = [
        str(pod["metadata"]["name"])
        for page in pages
        for pod in page.get("items") or ()
        if pod.get("status", {}).get("phase") == "Running"
    ]
    if not found:
        raise CliError(
            f"no analyzer of profile {printable(profile)} runs in namespace {namespace}: give the"
            " namespace of Reveal with --reveal-namespace"
        )
    return found


def _get(connection: socket.socket, name: str) -> bytes:
    """Return the body of the response of the analyzer; raises ``CliError`` for its sentence."""
    connection.sendall(f"GET /evidence/{name} HTTP/1.0\r\nHost: localhost\r\n\r\n".encode())
    response = HTTPResponse(connection)
    response.begin()
    body = response.read(_MOST_BYTES)
    if response.status == 200:
        return body
    sentence = printable(clipped(body.decode(errors="replace").strip(), _MAX_REASON))
    raise CliError(f"{name}: {sentence}")


def _forbidden(what: str, namespace: str) -> CliError:
    return CliError(
        f"you may not {what} in namespace {namespace}: ask its administrator for a RoleBinding"
        f" there to the Role {ROLE}, or RELEASE-{ROLE}"
    )
