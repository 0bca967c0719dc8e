"""What the operator asks of the Kubernetes API, and how it is refused; ``kube`` is the client."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

Object = dict[str, Any]
Manifest = Mapping[str, Any]

AWAY = 0  # no status: nobody answered
FORBIDDEN, NOT_FOUND, CONFLICT, GONE, INVALID = 403, 404, 409, 410, 422
_NO_USE = (400, 401, FORBIDDEN, NOT_FOUND, 405, 406, 413, 415, INVALID)


class ApiError(Exception):
    """A request that was refused, or that nobody answered (``status`` 0).

    ``reason`` and ``message`` are those of the API server (metav1.Status), ``causes`` the kinds
    of its details.
    """

    def __init__(
        self, status: int, reason: str, message: str, causes: tuple[str, ...] = ()
    ) -> None:
        super().__init__(message)
        self.status, self.reason, self.message, self.causes = status, reason, message, causes

    @property
    def passing(self) -> bool:
        """Whether the same request may be granted in a moment: conflicts, load, nobody there."""
        return self.status not in _NO_USE


@dataclass(frozen=True, slots=True)
class Page:
    """Some objects of a list, and the version of the whole list, from which a watch goes on."""

    items: list[Object]
    version: str


class Api(Protocol):
    """The requests of the operator.  All block, and raise ``ApiError``."""

    def get(self, kind: str, name: str, namespace: str = "") -> Object | None:
        """The object, or None where there is none."""

    def apply(self, manifest: Manifest, subresource: str = "") -> Object:
        """Server-side apply, forced: the whole intent of this field manager."""

    def create(self, manifest: Manifest) -> Object:
        """A new object."""

    def merge(self, kind: str, name: str, namespace: str, patch: Manifest) -> Object:
        """A JSON merge patch (RFC 7396)."""

    def delete(
        self, kind: str, name: str, namespace: str = "", *, uid: str, version: str = ""
    ) -> bool:
        """Delete that very object (in that version); False where it is gone, or another one."""

    def pages(
        self, kind: str, namespace: str = "", labels: str = "", *, metadata: bool = False
    ) -> Iterator[Page]:
        """All objects in pages; with ``metadata`` nothing but theirs (PartialObjectMetadata)."""

    def watch(self, kind: str, since: str) -> Iterator[tuple[str, Object]]:
        """Types and objects of changes after the version ``since``; ends after some minutes."""

    def serves(self, group: str, version: str) -> frozenset[str]:
        """The resources of an API group that are served now."""
