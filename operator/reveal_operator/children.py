"""Brings the children of one profile to what its plan says: applies, skips, deletes.

A child that was judged and that nobody touched since costs nothing; any other one is read afresh,
and written only where it does not cover its intent.  So nothing is written in a cluster at rest,
also not after a restart of the operator, and a stale index does no harm.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from reveal_contract.kube.errors import FORBIDDEN, INVALID, NOT_FOUND, ApiError
from reveal_contract.kube.names import ANNOTATION_INTENT, LABEL_MANAGED_BY, OPERATOR_MANAGER
from reveal_operator.api import Api, Manifest, Object
from reveal_operator.drift import covers, fingerprint, intent_seen
from reveal_operator.metrics import Metrics
from reveal_operator.seen import ChildSeen, ProfileSeen, owner_of
from reveal_operator.troubles import Trouble

# until what was refused is tried again, where neither intent nor object changes before
PAUSES_S = {INVALID: 600.0, FORBIDDEN: 30.0, NOT_FOUND: 30.0}
FOREIGN_PAUSE_S = 300.0
LEAVING_PAUSE_S = 5.0
NAME_TAKEN = "NameTaken"

_Key = tuple[str, str]  # kind and name
_log = logging.getLogger(__name__)


@dataclass
class Outcome:
    """Of one visit: what will not do, what should do in a moment, when to look again."""

    refused: Trouble | None = None
    failed: ApiError | None = None
    again: float | None = None

    def refuse(self, trouble: Trouble, again: float) -> None:
        """The first refusal is the one that is told."""
        self.refused = self.refused or trouble
        self.look_again(again)

    def look_again(self, after: float) -> None:
        """In so many seconds, or sooner."""
        self.again = min(after, self.again or after)


@dataclass(frozen=True, slots=True)
class _Refusal:
    intent: str
    fingerprint: str
    until: float
    trouble: Trouble


@dataclass
class _Memory:
    """What was judged: (uid, intent, fingerprint) of a child; and what was refused."""

    judged: dict[_Key, tuple[str, str, str]] = field(default_factory=dict)
    refused: dict[_Key, _Refusal] = field(default_factory=dict)


class Children:
    """The children of all profiles in one namespace; a profile is visited by one task at a time."""

    def __init__(
        self,
        api: Api,
        namespace: str,
        metrics: Metrics,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._api, self._namespace, self._metrics, self._clock = api, namespace, metrics, clock
        self._memories: dict[str, _Memory] = {}

    def forget(self, profile: str) -> None:
        self._memories.pop(profile, None)

    async def sync(
        self, profile: ProfileSeen, wanted: Sequence[Manifest], seen: Sequence[ChildSeen]
    ) -> Outcome:
        """Every child is tried, whatever becomes of the others."""
        memory = self._memories.setdefault(profile.name, _Memory())
        outcome, known = Outcome(), {child.key: child for child in seen}
        for manifest in wanted:
            key, intent = _key(manifest), intent_seen(manifest)
            child = known.get(key)
            if child and memory.judged.get(key) == (child.uid, intent, child.fingerprint):
                continue
            await self._sync_one(memory, profile, manifest, outcome)
        kept = {_key(manifest) for manifest in wanted}
        for child in seen:
            if child.key not in kept and child.owner_uid == profile.uid and not child.deleting:
                await self._delete(profile, child, outcome)
        for key in memory.judged.keys() - kept:
            del memory.judged[key]
        return outcome

    async def _sync_one(
        self, memory: _Memory, profile: ProfileSeen, wanted: Manifest, outcome: Outcome
    ) -> None:
        kind, name = key = _key(wanted)
        intent = intent_seen(wanted)
        found = ""
        try:
            live = await asyncio.to_thread(self._api.get, kind, name, self._namespace)
            found = fingerprint(live) if live else ""
            if (refusal := memory.refused.get(key)) and self._holds(refusal, intent, found):
                outcome.refuse(refusal.trouble, refusal.until - self._clock())
            elif live is not None and "deletionTimestamp" in live["metadata"]:
                outcome.look_again(LEAVING_PAUSE_S)  # it is made again once it is gone
            elif live is not None and not _is_ours(live, profile):
                told = f"{kind} {self._namespace}/{name} belongs to something else: delete it"
                outcome.refuse(Trouble(NAME_TAKEN, told), FOREIGN_PAUSE_S)
            else:
                if live is None or intent_seen(live) != intent or not covers(live, wanted):
                    live = await self._apply(profile, wanted, live)
                memory.judged[key] = (live["metadata"]["uid"], intent, fingerprint(live))
                memory.refused.pop(key, None)
        except ApiError as error:
            self._failed(memory, wanted, found, error, outcome)

    async def _apply(self, profile: ProfileSeen, wanted: Manifest, live: Object | None) -> Object:
        kind, name = _key(wanted)
        try:
            applied = await asyncio.to_thread(self._api.apply, wanted)
        except ApiError:
            self._metrics.applied(kind, "refused")
            raise
        # the server writes nothing where nothing changes
        same = live is not None and _version(live) == _version(applied)
        result = "created" if live is None else "unchanged" if same else "changed"
        self._metrics.applied(kind, result)
        if not same:
            _log.info("%s %s %s", kind, name, result, extra={"object": profile.reference})
        return applied

    async def _delete(self, profile: ProfileSeen, child: ChildSeen, outcome: Outcome) -> None:
        try:
            gone = await asyncio.to_thread(
                self._api.delete, child.kind, child.name, self._namespace, uid=child.uid
            )
        except ApiError as error:
            outcome.failed = error
            return
        if gone:
            self._metrics.deleted(child.kind)
            about = {"object": profile.reference}
            _log.info("%s %s deleted: no longer wanted", child.kind, child.name, extra=about)

    def _failed(
        self, memory: _Memory, wanted: Manifest, found: str, error: ApiError, outcome: Outcome
    ) -> None:
        pause, (kind, name) = PAUSES_S.get(error.status), _key(wanted)
        if error.transient or pause is None:
            outcome.failed = error
            return
        trouble = refusal_of(f"{kind} {self._namespace}/{name}", error)
        until = self._clock() + pause
        memory.refused[kind, name] = _Refusal(intent_seen(wanted), found, until, trouble)
        outcome.refuse(trouble, pause)
        _log.warning("%s", trouble.message)

    def _holds(self, refusal: _Refusal, intent: str, found: str) -> bool:
        same = (refusal.intent, refusal.fingerprint) == (intent, found)
        return same and self._clock() < refusal.until


def _key(manifest: Manifest) -> _Key:
    return manifest["kind"], manifest["metadata"]["name"]


def refusal_of(what: str, error: ApiError) -> Trouble:
    """What the API server will not take, and why, in one word and a sentence."""
    if error.status == INVALID:
        immutable = "immutable" in error.message
        reason = "ImmutableField" if immutable else "Refused"
        hint = "; delete it, and it is made anew" if immutable else ""
        return Trouble(reason, f"the API server refuses {what}: {error.message}{hint}")
    if "NamespaceTerminating" in error.causes:
        return Trouble(
            "NamespaceTerminating", f"{what} cannot be made: its namespace is going away"
        )
    if error.status == NOT_FOUND:
        return Trouble("NamespaceMissing", f"{what} cannot be made: {error.message}")
    told = f"the operator may not write {what}: {error.message}; its Role in the chart allows it"
    return Trouble("Forbidden", told)


def _is_ours(live: Object, profile: ProfileSeen) -> bool:
    """Ours, left by a profile of this name that was deleted, or an orphan of either."""
    if owner_of(live):
        return owner_of(live)["name"] == profile.name
    references: list[dict[str, Any]] = live["metadata"].get("ownerReferences") or []
    if any(reference.get("controller") for reference in references):
        return False
    marks = {
        **(live["metadata"].get("labels") or {}),
        **(live["metadata"].get("annotations") or {}),
    }
    return marks.get(LABEL_MANAGED_BY) == OPERATOR_MANAGER or ANNOTATION_INTENT in marks


def _version(live: Object) -> str:
    return str(live["metadata"]["resourceVersion"])
