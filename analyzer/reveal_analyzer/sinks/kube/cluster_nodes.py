"""Which names are nodes of the cluster: listed at the start, later asked for one by one."""

from __future__ import annotations

import logging
import threading
from itertools import islice

from reveal_analyzer.sinks.kube.api import SinkApi
from reveal_contract.kube.errors import ForbiddenError, NotFoundError

log = logging.getLogger(__name__)

NAMES_A_STEP = 20  # that are asked for
ANSWER_SECONDS = 60.0  # after which a name without a node is asked for again
LIST_AGAIN_SECONDS = 600.0  # after a refusal
MOST_NAMES = 4096  # that wait, and that have no node


class ClusterNodes:
    """Answers from what ``step`` read.

    The loop of the analyzer calls ``is_node``, which sends no request.  The thread of the sink
    calls ``step``.
    """

    def __init__(self, api: SinkApi) -> None:
        self._api = api
        self._lock = threading.Lock()
        self._known: set[str] | None = None
        self._waiting: dict[str, None] = {}
        self._absent: dict[str, float] = {}  # until when that counts, of the monotonic clock
        self._list_s = 0.0

    def is_node(self, name: str) -> bool | None:
        """Return whether the cluster has a node; None where that cannot be known.

        A node that has just joined the cluster is one after the next step.
        """
        with self._lock:
            if self._known is None:
                return None
            if name in self._known:
                return True
            if name not in self._absent and len(self._waiting) < MOST_NAMES:
                self._waiting[name] = None
            return False

    def step(self, now: float) -> None:
        """List the nodes, or ask for some names; raises ``ApiError``.  ``now`` is monotonic."""
        if self._known is None:
            self._list(now)
        else:
            self._ask(now)

    def _list(self, now: float) -> None:
        if now < self._list_s:
            return
        try:
            known = set(self._api.node_names())
        except ForbiddenError as error:
            log.warning("the nodes of the cluster cannot be listed, any name is taken: %s", error)
            self._list_s = now + LIST_AGAIN_SECONDS
            return
        with self._lock:
            self._known = known

    def _ask(self, now: float) -> None:
        with self._lock:
            self._absent = {name: until for name, until in self._absent.items() if until > now}
            names = list(islice(self._waiting, NAMES_A_STEP))
        for name in names:
            found = self._has(name)
            with self._lock:
                del self._waiting[name]
                if found and self._known is not None:
                    self._known.add(name)
                elif len(self._absent) < MOST_NAMES:
                    self._absent[name] = now + ANSWER_SECONDS

    def _has(self, name: str) -> bool:
        try:
            self._api.node(name)
        except NotFoundError:
            return False
        return True
