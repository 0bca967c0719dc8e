"""What the sinks ask of the Kubernetes API, and the ways in which it says no."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Protocol

Object = dict[str, Any]


class ApiError(Exception):
    """The API did not do it; the text says what was asked and what it answered."""


class AwayError(ApiError):
    """It cannot be reached, is overloaded or broken: the same may work later.

    ``after`` is for how many seconds it asked to be left alone.  ``answered``: it said no to this
    request, as it does where a webhook fails, and may take others.
    """

    def __init__(self, text: str, after: float = 0.0, *, answered: bool = False) -> None:
        super().__init__(text)
        self.after, self.answered = after, answered


class RefusedError(ApiError):
    """We may not, or the kind is not known there: somebody has to do something first."""


class InvalidError(ApiError):
    """This one object is not taken, and never will be."""


class MissingError(ApiError):
    """There is no such object."""


class ExistsError(ApiError):
    """There is one of that name already."""


class Api(Protocol):
    """The calls; each raises ``ApiError`` and takes no longer than its time limits."""

    def profile(self, name: str) -> Object:
        """A RevealProfile."""

    def apply_profile_status(self, name: str, status: Mapping[str, Any]) -> None:
        """Our fields of a profile's status, by server-side apply."""

    def open_reports(self, profile: str) -> Iterator[Object]:
        """The AnomalyReports of a profile that are labelled as open, page by page."""

    def create_report(self, body: Object) -> Object:
        """``ExistsError`` where there is one of that name; gives the object."""

    def apply_report_status(self, name: str, body: Object) -> None:
        """The whole status, by server-side apply; ``MissingError`` without such a report."""

    def label_report(self, name: str, labels: Mapping[str, str]) -> None: ...

    def create_event(self, namespace: str, body: Object) -> None: ...

    def patch_event(self, namespace: str, name: str, patch: Object) -> None: ...

    def node_uid(self, name: str) -> str: ...

    def patch_node_conditions(self, name: str, conditions: list[Object]) -> None:
        """A strategic merge by the conditions' types; ``$patch: delete`` takes one away."""

    def close(self) -> None: ...
