"""Samples from the analyzers of a profile, through the API server."""

from __future__ import annotations

import socket
from http.client import HTTPException, HTTPResponse

from reveal_cli.errors import CliError
from reveal_cli.kubectl.cluster import Requests
from reveal_cli.kubectl.reports import ClusterReport
from reveal_contract import foreign_json
from reveal_contract.foreign_names import printable
from reveal_contract.kube.errors import FORBIDDEN, ApiError
from reveal_contract.kube.names import (
    ANALYZER,
    LABEL_COMPONENT,
    LABEL_PROFILE,
    SAMPLES_PORT,
    clipped,
    label_value,
)
from reveal_contract.kube.paths import path

ROLE = "reveal-samples"
_OK, _NOT_FOUND = 200, 404
_MOST_BYTES = 32 << 20
_MAX_REASON = 300


class NoSamplesError(CliError):
    """The analyzers have no samples of what was asked for."""


class AnalyzerPods:
    """The running analyzers of a profile; ``namespace`` is theirs."""

    def __init__(self, requests: Requests, profile: str, namespace: str) -> None:
        self.profile = profile
        self._requests, self._namespace = requests, namespace
        self._pods: list[str] = []

    def get(self, target: str) -> bytes:
        """Return what the first analyzer that responds has.

        Raises ``NoSamplesError`` with its sentence if there is nothing, else ``CliError`` with what
        to do.
        """
        problem = ""
        for pod in self._pods or self._running():
            try:
                found = self._get_from(pod, target)
            except (OSError, HTTPException) as error:
                problem = f"{type(error).__name__}: {printable(clipped(str(error), _MAX_REASON))}"
            except ApiError as error:
                if error.status == FORBIDDEN:
                    raise _forbidden("forward ports of pods", self._namespace) from None
                problem = printable(clipped(error.message, _MAX_REASON))
            else:
                self._pods = [pod]
                return found
        self._pods = []  # they may have been replaced
        raise CliError(f"no analyzer of profile {printable(self.profile)} responds: {problem}")

    def _running(self) -> list[str]:
        """Return the names of the pods."""
        labels = f"{LABEL_COMPONENT}={ANALYZER},{LABEL_PROFILE}={label_value(self.profile)}"
        query = [("labelSelector", labels)]
        try:
            pages = list(self._requests.pages(path("Pod", self._namespace), query=query))
        except ApiError as error:
            if error.status == FORBIDDEN:
                raise _forbidden("list pods", self._namespace) from None
            reason = printable(clipped(error.message, _MAX_REASON))
            server = self._requests.server
            raise CliError(f"the API server {server} does not list pods: {reason}") from None
        found = [
            str(pod["metadata"]["name"])
            for page in pages
            for pod in page.get("items") or ()
            if pod.get("status", {}).get("phase") == "Running"
        ]
        if not found:
            raise CliError(
                f"no analyzer of profile {printable(self.profile)} runs in namespace"
                f" {self._namespace}: give the namespace of Reveal with --reveal-namespace"
            )
        return found

    def _get_from(self, pod: str, target: str) -> bytes:
        where = path("Pod", self._namespace, pod, "portforward")
        with self._requests.forwarded(where, SAMPLES_PORT) as connection:
            return _get(connection, target)


def samples_of(requests: Requests, item: ClusterReport, namespace: str) -> bytes:
    """Return the recording of a report's finding; raises ``CliError`` with what to do.

    ``namespace`` is that of the analyzers.
    """
    profile, ref = item.report.identity.profile, item.finding.evidence_ref
    if ref is None:
        raise CliError(
            f"no samples are kept of report {item.name}: see spec.evidence of profile"
            f" {profile}, and its condition Degraded"
        )
    return AnalyzerPods(requests, profile, namespace).get(f"/evidence/{ref.name}")


def nodes_of(pods: AnalyzerPods) -> list[str]:
    """Return the nodes that an analyzer knows; raises ``CliError``."""
    try:
        found = foreign_json.loads(pods.get("/nodes"))
    except ValueError as error:
        raise CliError(f"an analyzer does not list its nodes: {error}") from None
    return [name for name in found if isinstance(name, str)] if isinstance(found, list) else []


def _get(connection: socket.socket, target: str) -> bytes:
    """Return the body of the response of an analyzer."""
    connection.sendall(f"GET {target} HTTP/1.0\r\nHost: localhost\r\n\r\n".encode())
    response = HTTPResponse(connection)
    response.begin()
    if response.length is None or response.length > _MOST_BYTES:
        raise CliError(f"an analyzer responds with {response.length or 'unknown'} bytes")
    body = response.read()  # raises an error where the connection ends before
    if response.status == _OK:
        return body
    sentence = printable(clipped(body.decode(errors="replace").strip(), _MAX_REASON))
    raise NoSamplesError(sentence) if response.status == _NOT_FOUND else CliError(sentence)


def _forbidden(what: str, namespace: str) -> CliError:
    return CliError(
        f"you may not {what} in namespace {namespace}: ask its administrator for a RoleBinding"
        f" there to the Role {ROLE}, or RELEASE-{ROLE}"
    )
