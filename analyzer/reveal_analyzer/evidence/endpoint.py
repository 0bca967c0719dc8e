"""HTTP endpoint of samples: those that are kept of findings and nodes, and those in the stream.

It listens on 127.0.0.1: who may forward ports of the pod may read samples.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Protocol
from urllib.parse import parse_qs

from reveal_analyzer.evidence.store import EvidenceStore, load_evidence
from reveal_analyzer.node_history.stores import HistoryStore
from reveal_analyzer.stream.redis_connection import OUTAGE
from reveal_contract.foreign_names import printable
from reveal_contract.recording import RecordingError
from reveal_contract.runtime.http_endpoints import text_response

if TYPE_CHECKING:
    from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

_BINARY, _JSON = "application/octet-stream", "application/json"
_NOT_FOUND = "404 Not Found"


class Nodes(Protocol):
    """What the stream has of nodes; methods raise ``LookupError`` with a sentence for none."""

    def recording(self, node: str, since_ns: int) -> bytes:
        """Return a recording of the slices that begin after ``since_ns``."""

    def names(self) -> list[str]:
        """Return the nodes."""

    def announced(self, node: str) -> dict[str, Any]:
        """Return what the collector of a node published."""


def application(
    store: EvidenceStore | None, nodes: Nodes, history: HistoryStore | None = None
) -> WSGIApplication:
    """Return the application, which responds with 200 and samples, else with a sentence.

    ``/evidence/NAME`` is the recording of a finding.  ``/slices/NODE?since=NS`` is a recording of
    the last two minutes of a node, or what begins after that time of the node; ``/announced/NODE``
    is a JSON object of what its collector says of itself.  ``/history/NODE?hour=H`` are the parts
    of an hour since the epoch (``node_history.codec``).  ``/nodes`` is a JSON list of the nodes.
    """
    routes: Mapping[str, Callable[[str, str], tuple[str, bytes]]] = {
        "evidence": lambda name, _: (_BINARY, _kept(store, name)),
        "slices": lambda node, query: (_BINARY, nodes.recording(node, _since(query))),
        "history": lambda node, query: (_BINARY, _hour(history, node, query)),
        "nodes": lambda *_: (_JSON, json.dumps(nodes.names()).encode()),
        "announced": lambda node, _: (_JSON, json.dumps(nodes.announced(node)).encode()),
    }

    def answer(environ: WSGIEnvironment, start: StartResponse) -> Iterable[bytes]:
        kind, _, name = _path(environ).partition("/")
        if kind not in routes:
            return text_response(start, _NOT_FOUND, "not found")
        try:
            content, data = routes[kind](name, str(environ.get("QUERY_STRING", "")))
        except LookupError as error:
            return text_response(start, _NOT_FOUND, str(error.args[0]))
        except ValueError as error:  # of a query, or a damaged recording
            damaged = isinstance(error, RecordingError)
            status = "500 Internal Server Error" if damaged else "400 Bad Request"
            return text_response(start, status, str(error))
        except OUTAGE as error:
            return text_response(start, "503 Service Unavailable", f"the store is away: {error}")
        start("200 OK", [("Content-Type", content), ("Content-Length", f"{len(data)}")])
        return [data]

    return answer


def _path(environ: Mapping[str, Any]) -> str:
    """Return the path as text: WSGI has its bytes as Latin-1 (PEP 3333)."""
    raw = str(environ.get("PATH_INFO", "")).encode("latin-1", "replace")
    return raw.decode(errors="replace").removeprefix("/")


def _kept(store: EvidenceStore | None, name: str) -> bytes:
    try:
        if store is not None:
            return load_evidence(store, name)
    except KeyError:
        pass
    raise LookupError("there are no samples of this finding")


def _hour(history: HistoryStore | None, node: str, query: str) -> bytes:
    if history is None:
        raise LookupError("no history of nodes is kept: set spec.evidence.historyHours")
    data = history.read(node, _number(query, "hour", "hours since the epoch"))
    if not data:
        raise LookupError(f"nothing is kept of node {printable(node)} in this hour")
    return data


def _since(query: str) -> int:
    return _number(query, "since", "nanoseconds")


def _number(query: str, name: str, unit: str) -> int:
    """Return a number of the query; 0 if it is not given."""
    try:
        return int(parse_qs(query).get(name, ["0"])[0])
    except ValueError:
        raise ValueError(f"{name}: must be {unit}") from None
