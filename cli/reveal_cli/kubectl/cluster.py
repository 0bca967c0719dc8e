"""Requests for AnomalyReports with the rights of the user, and their errors as sentences."""

from __future__ import annotations

import argparse
import os
import re
import socket
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any, Protocol

from reveal_cli.errors import USAGE, CliError
from reveal_cli.kubectl.mentions import near
from reveal_cli.kubectl.reports import ClusterReport, ReportList
from reveal_contract import VERSION
from reveal_contract.foreign_names import printable
from reveal_contract.kube.errors import (
    FORBIDDEN,
    NO_RESPONSE,
    NOT_FOUND,
    UNAUTHORIZED,
    ApiError,
    NotFoundError,
)
from reveal_contract.kube.names import LABEL_STATE, PROFILE_KIND, REPORT_KIND, clipped
from reveal_contract.kube.paths import MERGE, METADATA_ONLY, path
from reveal_contract.time_units import NS_PER_SECOND

AGENT = f"kubectl-reveal/{VERSION}"
CONNECT_SECONDS, READ_SECONDS = 5.0, 30.0
READ_ROLE, SILENCE_ROLE = "reveal-view", "reveal-silence"
_MANAGER = [("fieldManager", "kubectl-reveal")]
_OPEN = [("labelSelector", f"{LABEL_STATE}=Open")]
_DEFAULT_KUBECONFIG = "~/.kube/config"
_NAME = re.compile(r"[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?", re.ASCII)
_MAX_REASON = 300  # bytes of what a server or a library says

Object = dict[str, Any]
Query = Sequence[tuple[str, str]]


class Requests(Protocol):
    """The part of ``kube.transport.Transport`` that the plugin needs."""

    @property
    def server(self) -> str: ...

    def now(self) -> float: ...

    def request(
        self,
        method: str,
        path: str,
        body: Mapping[str, Any] | None = None,
        *,
        query: Query = (),
        content: str = ...,
    ) -> Object: ...

    def pages(self, path: str, *, query: Query = (), accept: str = ...) -> Iterator[Object]: ...

    def forwarded(self, path: str, port: int) -> AbstractContextManager[socket.socket]: ...


class Cluster:
    """The AnomalyReports of a cluster; each method raises ``CliError``."""

    def __init__(self, requests: Requests) -> None:
        self._requests = requests

    @property
    def requests(self) -> Requests:
        """The requests with the rights of the user."""
        return self._requests

    @property
    def now_ns(self) -> int:
        """The time of the server's clock; right after the first request."""
        return int(self._requests.now() * NS_PER_SECOND)

    def open_reports(self) -> ReportList:
        """Return the reports of open findings."""
        return self._list(_OPEN)

    def reports(self) -> ReportList:
        """Return all reports: resolved ones are kept for a while."""
        return self._list(())

    def report(self, name: str) -> ClusterReport:
        """Return a report by its name; the error of a wrong name has similar ones."""
        if _NAME.fullmatch(name) is None:
            raise CliError(f"{printable(name)!r} cannot be the name of a report", USAGE)
        try:
            with self._clear_errors("get", READ_ROLE):
                found = self._requests.request("GET", path(REPORT_KIND, name=name))
        except NotFoundError:
            hint = near(name, self._names())
            raise CliError(f"there is no report {name}{hint}") from None
        return _parsed(found, name)

    def profiles(self) -> list[str]:
        """Return the names of the RevealProfiles."""
        with self._clear_errors("list", READ_ROLE, "RevealProfiles"):
            pages = list(self._requests.pages(path(PROFILE_KIND), accept=METADATA_ONLY))
        return _names_in(pages)

    def annotate(self, name: str, annotations: Mapping[str, str | None]) -> ClusterReport:
        """Set annotations of a report, remove those that are None, and return the report."""
        body = {"metadata": {"annotations": dict(annotations)}}
        try:
            with self._clear_errors("patch", SILENCE_ROLE):
                found = self._requests.request(
                    "PATCH", path(REPORT_KIND, name=name), body, query=_MANAGER, content=MERGE
                )
        except NotFoundError:
            raise CliError(f"there is no report {name} any more") from None
        return _parsed(found, name)

    def _list(self, query: Query) -> ReportList:
        with self._clear_errors("list", READ_ROLE):
            pages = list(self._requests.pages(path(REPORT_KIND), query=query))
        return ReportList.of(item for page in pages for item in page.get("items") or ())

    def _names(self) -> list[str]:
        """Return the names of all reports; none where the user may not list them."""
        try:
            pages = list(self._requests.pages(path(REPORT_KIND), accept=METADATA_ONLY))
        except ApiError:
            return []
        return _names_in(pages)

    @contextmanager
    def _clear_errors(self, verb: str, role: str, what: str = "AnomalyReports") -> Iterator[None]:
        try:
            yield
        except NotFoundError:
            raise  # the caller knows what was asked for
        except ApiError as error:
            raise CliError(sentence(error, self._requests.server, verb, role, what)) from None


def _parsed(found: Object, name: str) -> ClusterReport:
    report = ClusterReport.parse(found)
    if report is None:
        raise CliError(f"report {name} is of a version of Reveal that this program cannot read")
    return report


def _names_in(pages: Sequence[Object]) -> list[str]:
    return [str(each["metadata"]["name"]) for page in pages for each in page.get("items") or ()]


def sentence(
    error: ApiError, server: str, verb: str, role: str, what: str = "AnomalyReports"
) -> str:
    """Return what went wrong and what to do; ``role`` is the ClusterRole that permits ``verb``."""
    reason = printable(clipped(error.message, _MAX_REASON))
    if error.status == NO_RESPONSE:
        return f"the API server {server} cannot be reached: {reason}"
    if error.status == UNAUTHORIZED:
        return f"the API server {server} does not accept your credentials: log in again"
    if error.status == FORBIDDEN:
        return (
            f"you may not {verb} {what} on {server}: ask its administrator for a"
            f" ClusterRoleBinding to the ClusterRole {role}, or RELEASE-{role}"
        )
    if error.status == NOT_FOUND:
        return f"the cluster {server} has no {what}: Reveal is not installed there"
    return f"the API server {server} answers with {error.status}: {reason}"


def connect(arguments: argparse.Namespace) -> Cluster:
    """Return the cluster of the flags, as kubectl chooses it.  Nothing is sent yet."""
    from reveal_contract.kube import transport  # noqa: PLC0415 - imports the client package

    files = kubeconfig_of(arguments.kubeconfig, os.environ.get("KUBECONFIG", ""))
    try:
        found = transport.connect_user(
            files, arguments.context, AGENT, connect_s=CONNECT_SECONDS, read_s=READ_SECONDS
        )
    except transport.NoAccessError as error:
        if arguments.context is not None:
            _check_context(arguments.context, files)
        raise CliError(f"the kubeconfig {files} cannot be used: {_line(error)}") from None
    return Cluster(found)


def kubeconfig_of(flag: str | None, variable: str) -> str:
    """Return the kubeconfig files, with a colon between two; raises ``CliError`` without any."""
    files = flag or variable or _DEFAULT_KUBECONFIG
    paths = [flag] if flag else files.split(os.pathsep)
    if any(Path(part).expanduser().is_file() for part in paths if part):
        return files
    raise CliError(
        f"there is no kubeconfig: {printable(files)} does not exist; set KUBECONFIG or give"
        " --kubeconfig FILE"
    )


def _check_context(context: str, files: str) -> None:
    """Raise ``CliError`` if the kubeconfig has no such context."""
    from reveal_contract.kube import transport  # noqa: PLC0415 - imports the client package

    try:
        known = transport.contexts_of(files)
    except transport.NoAccessError:
        return
    if context not in known:
        name = printable(context)
        raise CliError(f"the kubeconfig {files} has no context {name}{near(context, known)}")


def _line(error: Exception) -> str:
    return printable(clipped(" ".join(str(error).split()), _MAX_REASON))
