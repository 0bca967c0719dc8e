"""HTTP endpoint of the samples of findings: ``GET /evidence/NAME``.

It listens on 127.0.0.1: who may forward ports of the pod may read samples.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from reveal_analyzer.evidence.store import EvidenceStore, load_evidence
from reveal_analyzer.stream.redis_connection import OUTAGE
from reveal_contract.recording import RecordingError
from reveal_contract.runtime.http_endpoints import text_response

if TYPE_CHECKING:
    from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

PATH = "/evidence/"


def application(store: EvidenceStore) -> WSGIApplication:
    """Return the application: 200 with the recording of a finding, else a sentence."""

    def answer(environ: WSGIEnvironment, start: StartResponse) -> Iterable[bytes]:
        name = str(environ.get("PATH_INFO", "")).removeprefix(PATH)
        try:
            data = load_evidence(store, name)
        except KeyError:
            return text_response(start, "404 Not Found", "there are no samples of this finding")
        except RecordingError as error:
            return text_response(start, "500 Internal Server Error", str(error))
        except OUTAGE as error:
            return text_response(start, "503 Service Unavailable", f"the store is away: {error}")
        headers = [("Content-Type", "application/octet-stream"), ("Content-Length", f"{len(data)}")]
        start("200 OK", headers)
        return [data]

    return answer
