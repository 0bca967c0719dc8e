"""Errors of requests to the Kubernetes API, one class for each thing that a caller can do about it.

The classes follow the "Response Status Kind" section of the Kubernetes API conventions.
"""

from __future__ import annotations

import json
from typing import Any

NO_RESPONSE = 0  # status of a request that nobody answered
UNAUTHORIZED, FORBIDDEN, NOT_FOUND, CONFLICT, GONE = 401, 403, 404, 409, 410
INVALID, SERVER_ERROR = 422, 500
# the same request gets the same answer until somebody changes the object, the rights or the cluster
_PERMANENT = (400, UNAUTHORIZED, FORBIDDEN, NOT_FOUND, 405, 406, 413, 415, INVALID)
_MAX_TEXT = 1000  # characters


class ApiError(Exception):
    """A request that the Kubernetes API did not carry out.

    ``status`` is the HTTP status, 0 without a response.  ``reason`` and ``message`` are those of
    the server's ``metav1.Status``, ``causes`` the reasons of its details.  ``request`` is the
    method and path.
    """

    def __init__(
        self,
        message: str,
        status: int = NO_RESPONSE,
        reason: str = "",
        *,
        causes: tuple[str, ...] = (),
        request: str = "",
    ) -> None:
        super().__init__(message)
        self.message, self.status, self.reason = message, status, reason
        self.causes, self.request = causes, request

    def __str__(self) -> str:
        code = f"{self.status} {self.reason}".strip() if self.status else ""
        return ": ".join(filter(None, (self.request, code, self.message)))[:_MAX_TEXT]

    @property
    def transient(self) -> bool:
        """Whether the same request may succeed later: conflict, load, no response."""
        return self.status not in _PERMANENT


class UnavailableError(ApiError):
    """The API server is unreachable, overloaded or broken: retry later.

    ``retry_after_s`` is the pause that the server asked for, 0 without one.
    """

    retry_after_s: float = 0.0

    @property
    def concerns_object(self) -> bool:
        """Whether only this object may fail: a broken admission webhook answers with 500."""
        return self.status == SERVER_ERROR


class ForbiddenError(ApiError):
    """The client has no right to it, or the resource type is not served: an operator must act."""


class InvalidObjectError(ApiError):
    """The server will never accept this object."""


class NotFoundError(ApiError):
    """There is no object of that name."""


class AlreadyExistsError(ApiError):
    """There is already an object of that name."""


def error_of(
    request: str, status: int, data: bytes, http_reason: str = "", retry_after: str = ""
) -> ApiError:
    """Return the error for a response that is no success; proxies answer without a Status."""
    answer = _status_object(data, http_reason)
    details = answer.get("details")
    details = details if isinstance(details, dict) else {}
    reason = str(answer.get("reason") or "")
    causes = tuple(str(cause.get("reason", "")) for cause in details.get("causes") or ())
    kind = _class_of(status, reason, named=bool(details.get("name")))
    error = kind(str(answer.get("message") or ""), status, reason, causes=causes, request=request)
    if isinstance(error, UnavailableError) and retry_after.isdigit():  # else it is a date
        error.retry_after_s = float(retry_after)
    return error


def _class_of(status: int, reason: str, *, named: bool) -> type[ApiError]:
    if status == NOT_FOUND and named:  # without a name it is the resource type that is missing
        return NotFoundError
    if status == CONFLICT and reason == "AlreadyExists":
        return AlreadyExistsError
    if status in (UNAUTHORIZED, FORBIDDEN, NOT_FOUND):
        return ForbiddenError
    return InvalidObjectError if status in _PERMANENT else UnavailableError


def _status_object(data: bytes, http_reason: str) -> dict[str, Any]:
    """Return the ``metav1.Status`` of a response; a text of something else becomes its message."""
    try:
        found = json.loads(data)
    except ValueError:
        found = None
    if isinstance(found, dict):
        return found
    text = data[:200].decode(errors="replace").strip()
    return {"reason": http_reason, "message": text or http_reason}
