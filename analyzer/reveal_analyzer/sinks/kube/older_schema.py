"""Writes to custom resources whose schema in the cluster is older than this analyzer.

Server-side apply refuses an object with a field that the schema does not have.  Custom resource
definitions are often upgraded by other hands than the programs, so what the schema has must still
be written: the field is left out, and a warning says what to do.
"""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from reveal_contract.kube.errors import ApiError

log = logging.getLogger(__name__)

_UNDECLARED = re.compile(r"\.status\.(\w+)[\w.\[\]=\"]*: field not declared in schema")
_FORGOTTEN_S = 600.0  # then the schema is tried again

Body = dict[str, Any]
T = TypeVar("T")


class OlderSchema:
    """Fields of the status that the schema of a kind does not have, as far as they are known."""

    def __init__(self, kind: str, clock: Callable[[], float] = time.monotonic) -> None:
        self._kind, self._clock = kind, clock
        self._missing: dict[str, float] = {}  # field: when it was refused

    def send(self, body: Mapping[str, Any], send: Callable[[Body], T]) -> T:
        """Send a body, without the fields of its status that the schema does not have.

        Returns what ``send`` returns.
        """
        while True:
            try:
                return send(self._without_missing(body))
            except ApiError as error:
                missing = set(_UNDECLARED.findall(error.message)) - self._known()
                if not missing:
                    raise
                self._note(missing)

    def _known(self) -> set[str]:
        least_s = self._clock() - _FORGOTTEN_S
        return {name for name, refused_s in self._missing.items() if refused_s >= least_s}

    def _without_missing(self, body: Mapping[str, Any]) -> Body:
        known = self._known()
        status = {key: value for key, value in body["status"].items() if key not in known}
        return {**body, "status": status}

    def _note(self, missing: set[str]) -> None:
        for name in sorted(missing):
            log.warning(
                "the cluster's definition of %s has no status.%s and is older than this analyzer:"
                " the field is left out; apply the definitions of this version (crds/)",
                self._kind, name,
            )  # fmt: skip
            self._missing[name] = self._clock()
