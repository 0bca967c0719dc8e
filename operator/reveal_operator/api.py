"""The requests that the operator sends to the Kubernetes API; ``kube`` implements them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

Object = dict[str, Any]
Manifest = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Page:
    """Some objects of a list, and the version of the whole list, from which a watch goes on."""

    items: list[Object]
    version: str


class Api(Protocol):
    """The requests of the operator.  All block, and raise ``ApiError`` of the contract."""

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
