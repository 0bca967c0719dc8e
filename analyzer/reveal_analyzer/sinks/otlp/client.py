"""Requests to a receiver of OTLP/HTTP; the thread of the sink alone uses it."""

from __future__ import annotations

import json
import os
import ssl
from collections.abc import Mapping
from http.client import HTTPException
from typing import Any
from urllib.error import HTTPError
from urllib.parse import unquote
from urllib.request import HTTPRedirectHandler, HTTPSHandler, Request, build_opener

from reveal_contract import VERSION
from reveal_contract.foreign_names import printable
from reveal_contract.kube.names import OTLP_HEADERS_VARIABLE

TIMEOUT_SECONDS = 10.0
# OTLP specification, "OTLP/HTTP Response": what may be sent again
RETRYABLE = frozenset({429, 502, 503, 504})
_MOST_TEXT = 200


class OtlpError(Exception):
    """A message that was not taken; ``is_final`` if it never will be."""

    def __init__(self, text: str, *, is_final: bool = False) -> None:
        super().__init__(text)
        self.is_final = is_final


class _NoRedirect(HTTPRedirectHandler):
    """Headers with credentials are for the receiver that was named, and no other."""

    def redirect_request(self, *args: Any, **kwargs: Any) -> None:
        return None


class OtlpClient:
    """Sends messages to the paths below an endpoint."""

    def __init__(self, endpoint: str, environment: Mapping[str, str] = os.environ) -> None:
        self.endpoint = endpoint.rstrip("/")
        self._headers = {
            "Content-Type": "application/json",
            "User-Agent": f"reveal/{VERSION}",
            **headers_of(environment.get(OTLP_HEADERS_VARIABLE, "")),
        }
        context = ssl.create_default_context()
        self._opener = build_opener(_NoRedirect, HTTPSHandler(context=context))

    def send(self, path: str, message: Mapping[str, Any]) -> None:
        """Send a message; raises ``OtlpError``."""
        data = json.dumps(message, ensure_ascii=False, separators=(",", ":"))
        # a name of a host may have bytes that are no text
        body = data.encode(errors="replace")
        request = Request(f"{self.endpoint}{path}", body, self._headers)  # noqa: S310 - checked
        try:
            with self._opener.open(request, timeout=TIMEOUT_SECONDS) as response:
                response.read(_MOST_TEXT)
        except HTTPError as error:
            with error:
                text = printable(error.read(_MOST_TEXT).decode(errors="replace").strip())
            final = error.code not in RETRYABLE
            raise OtlpError(f"{path}: {error.code} {text}", is_final=final) from None
        except (OSError, HTTPException, ValueError) as error:
            raise OtlpError(f"{path}: {error}") from None


def headers_of(text: str) -> dict[str, str]:
    """Return the headers of ``OTEL_EXPORTER_OTLP_HEADERS``: ``key=value,key2=value2``.

    Values are percent-encoded (OpenTelemetry specification, "Protocol Exporter").  What has no key
    is left out.
    """
    pairs = (part.partition("=") for part in text.split(","))
    return {key.strip(): unquote(value.strip()) for key, _, value in pairs if key.strip() and value}
