"""The requests that the operator sends to the Kubernetes API; ``kube`` implements them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

Object = dict[str, Any]
Manifest = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Page:
    """Some objects of a list, and the version of the list, at which a watch continues."""

    items: list[Object]
    version: str


class OperatorApi(Protocol):
    """The requests of the operator.  All block, and raise ``ApiError`` of the contract."""

    def now(self) -> float:
        """Return the time of the API server's clock, in epoch seconds."""

    def get(self, kind: str, name: str, namespace: str = "") -> Object | None:
        """Return the object, or None."""

    def apply(self, manifest: Manifest, subresource: str = "") -> Object:
        """Apply server-side, forced: ``manifest`` has all fields of this field manager."""

    def create(self, manifest: Manifest) -> Object:
        """Create an object."""

    def merge(self, kind: str, name: str, namespace: str, patch: Manifest) -> Object:
        """Send a JSON merge patch (RFC 7396)."""

    def remove_node_condition(self, name: str) -> None:
        """Remove our condition from a Node; a node that is gone has none."""

    def delete(
        self, kind: str, name: str, namespace: str = "", *, uid: str, version: str = ""
    ) -> bool:
        """Delete the object of that uid (in that version); False if it is gone or another one."""

    def pages(
        self, kind: str, namespace: str = "", labels: str = "", *, metadata: bool = False
    ) -> Iterator[Page]:
        """Yield all objects in pages; with ``metadata`` only that (PartialObjectMetadata)."""

    def watch(self, kind: str, since: str) -> Iterator[tuple[str, Object]]:
        """Yield type and object of each change after version ``since``; ends after minutes."""

    def serves(self, group: str, version: str) -> frozenset[str]:
        """Return the resources of an API group that are served now."""
