"""Looks at the pods of a workload that lacks some: seldom, and only while it does.

DaemonSets and Deployments tell how many pods are missing, not why.  Their pods are not watched (a
profile may have thousands): after half a minute they are listed, and then once a minute.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from dataclasses import dataclass

from reveal_contract.kube.errors import ApiError
from reveal_contract.kube.names import LABEL_COMPONENT, LABEL_PROFILE, label_value
from reveal_operator.api import Api
from reveal_operator.seen import ChildSeen
from reveal_operator.troubles import Trouble, explain

PATIENCE_S = 30.0  # a pod that starts takes so long; longer is worth a word
LOOK_S = 60.0

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Finding:
    """``trouble`` is None where nothing is missing, or not for long; ``again`` is in seconds."""

    trouble: Trouble | None = None
    again: float | None = None


@dataclass
class _Case:
    """A workload that lacks pods since ``since``."""

    since: float
    looked: float = 0.0
    trouble: Trouble | None = None


class Inspection:
    """Remembers since when which workload lacks pods."""

    def __init__(
        self, api: Api, namespace: str, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._api, self._namespace, self._clock = api, namespace, clock
        self._cases: dict[tuple[str, str], _Case] = {}
        self._met: set[tuple[str, str]] = set()

    def forget(self, profile: str) -> None:
        self._met = {key for key in self._met if key[0] != profile}
        for key in [key for key in self._cases if key[0] == profile]:
            del self._cases[key]

    async def of(self, profile: str, component: str, child: ChildSeen | None) -> Finding:
        """Why pods of ``child`` are missing.

        At once where they are the first time we see it: it was there before us, and so is what
        was said of it.  A child of a new profile is not there yet at the first visit.
        """
        key, now = (profile, component), self._clock()
        made, first = child.workload if child else None, key not in self._met
        self._met.add(key)
        if made is None or child is None or made.available >= made.desired:
            self._cases.pop(key, None)
            return Finding()
        case = self._cases.setdefault(key, _Case(now - PATIENCE_S if first else now))
        wait = case.since + PATIENCE_S - now
        if wait > 0:
            return Finding(None, wait)
        if case.trouble is None or now - case.looked >= LOOK_S:
            case.looked = now
            case.trouble = await self._look(profile, component, child)
        return Finding(case.trouble, LOOK_S)

    async def _look(self, profile: str, component: str, child: ChildSeen) -> Trouble:
        made = child.workload
        if made and made.complaints:
            reason, message = made.complaints[0]
            return Trouble(reason or "Unavailable", message)
        try:
            found = await asyncio.to_thread(self._explain, profile, component)
        except ApiError as error:
            _log.warning("pods cannot be listed: %s", error)
            return Trouble("Unavailable", f"their pods cannot be listed: {error.message}")
        if found is not None:
            return found
        how = f"kubectl -n {self._namespace} describe {child.kind.lower()} {child.name}"
        if made and made.created < made.desired:
            told = (
                f"their pods cannot be made; `{how}` tells why (often Pod Security: the namespace"
            )
            return Trouble("PodsNotCreated", f"{told} must allow privileged pods)")
        return Trouble("Unavailable", f"`{how}` tells more")

    def _explain(self, profile: str, component: str) -> Trouble | None:
        labels = f"{LABEL_PROFILE}={label_value(profile)},{LABEL_COMPONENT}={component}"
        pages = self._api.pages("Pod", self._namespace, labels)
        return explain(pod for page in pages for pod in page.items)
