"""Brings the objects that a profile owns to the state of its plan: applies, skips, deletes.

An object that was compared and has not changed since needs no request.  Any other one is read, and
written only where it differs from its manifest.  So nothing is written in a cluster at rest, not
even after a restart of the operator, and a stale index does no harm.
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
from reveal_operator.api import Manifest, Object, OperatorApi
from reveal_operator.drift import covers, fingerprint, intent_of_live
from reveal_operator.metrics import OperatorMetrics
from reveal_operator.observed import ObservedObject, ObservedProfile, owner_of
from reveal_operator.pod_failures import Failure

# until a refused request is repeated, if neither manifest nor object changes before
PAUSES_S = {INVALID: 600.0, FORBIDDEN: 30.0, NOT_FOUND: 30.0}
FOREIGN_PAUSE_S = 300.0
TERMINATING_PAUSE_S = 5.0
NAME_TAKEN = "NameTaken"

_Key = tuple[str, str]  # kind and name
_log = logging.getLogger(__name__)


@dataclass
class SyncResult:
    """Result of one visit.

    ``refused`` needs a change by somebody, ``failed`` may succeed later, ``again`` is after how
    many seconds to visit again.
    """

    refused: Failure | None = None
    failed: ApiError | None = None
    again: float | None = None

    def refuse(self, failure: Failure, again: float) -> None:
        """Note a refusal; the status reports the first one."""
        self.refused = self.refused or failure
        self.visit_again(again)

    def visit_again(self, after: float) -> None:
        """Visit again after so many seconds, or sooner."""
        self.again = min(after, self.again or after)


@dataclass(frozen=True, slots=True)
class _Refusal:
    intent: str
    fingerprint: str
    until: float
    failure: Failure


@dataclass
class _Memory:
    """Objects that equal their manifest, as (uid, intent, fingerprint), and refused ones."""

    in_sync: dict[_Key, tuple[str, str, str]] = field(default_factory=dict)
    refused: dict[_Key, _Refusal] = field(default_factory=dict)


class OwnedObjects:
    """The objects of all profiles in one namespace; one task at a time visits a profile."""

    def __init__(
        self,
        api: OperatorApi,
        namespace: str,
        metrics: OperatorMetrics,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._api, self._namespace, self._metrics, self._clock = api, namespace, metrics, clock
        self._memories: dict[str, _Memory] = {}

    def forget(self, profile: str) -> None:
        """Forget a profile that is gone."""
        self._memories.pop(profile, None)

    async def sync(
        self,
        profile: ObservedProfile,
        desired: Sequence[Manifest],
        observed: Sequence[ObservedObject],
        applied: Sequence[Manifest] | None = None,
    ) -> SyncResult:
        """Bring every object to its manifest, whatever happens to the others.

        With ``applied``, the others of the desired ones stay as they are for now.
        """
        memory = self._memories.setdefault(profile.name, _Memory())
        result, known = SyncResult(), {each.key: each for each in observed}
        for manifest in desired if applied is None else applied:
            key, intent = _key(manifest), intent_of_live(manifest)
            owned = known.get(key)
            # the normal case, without a request: it is as it was when it equaled its manifest
            if owned and memory.in_sync.get(key) == (owned.uid, intent, owned.fingerprint):
                continue
            await self._sync_object(memory, profile, manifest, result)
        kept = {_key(manifest) for manifest in desired}
        for owned in observed:
            # an object of an earlier profile of this name is the garbage collector's
            if owned.key not in kept and owned.owner_uid == profile.uid and not owned.deleting:
                await self._delete(profile, owned, result)
        for key in memory.in_sync.keys() - kept:
            del memory.in_sync[key]
        return result

    async def _sync_object(
        self, memory: _Memory, profile: ObservedProfile, desired: Manifest, result: SyncResult
    ) -> None:
        kind, name = key = _key(desired)
        intent = intent_of_live(desired)
        found = ""
        try:
            live = await asyncio.to_thread(self._api.get, kind, name, self._namespace)
            found = fingerprint(live) if live else ""
            if (refusal := memory.refused.get(key)) and self._holds(refusal, intent, found):
                # The server refused this very manifest for this very object: do not repeat it yet.
                result.refuse(refusal.failure, refusal.until - self._clock())
            elif live is not None and "deletionTimestamp" in live["metadata"]:
                result.visit_again(TERMINATING_PAUSE_S)  # it is created again once it is gone
            elif live is not None and not _is_ours(live, profile):
                message = f"{kind} {self._namespace}/{name} belongs to something else: delete it"
                result.refuse(Failure(NAME_TAKEN, message), FOREIGN_PAUSE_S)
            else:
                if live is None or intent_of_live(live) != intent or not covers(live, desired):
                    live = await self._apply(profile, desired, live)
                memory.in_sync[key] = (live["metadata"]["uid"], intent, fingerprint(live))
                memory.refused.pop(key, None)
        except ApiError as error:
            self._note_error(memory, desired, found, error, result)

    async def _apply(
        self, profile: ObservedProfile, desired: Manifest, live: Object | None
    ) -> Object:
        kind, name = _key(desired)
        try:
            applied = await asyncio.to_thread(self._api.apply, desired)
        except ApiError:
            self._metrics.applied(kind, "refused")
            raise
        # the server keeps the version where an apply changes nothing
        same = live is not None and _version(live) == _version(applied)
        outcome = "created" if live is None else "unchanged" if same else "changed"
        self._metrics.applied(kind, outcome)
        if not same:
            _log.info("%s %s %s", kind, name, outcome, extra={"object": profile.reference})
        return applied

    async def _delete(
        self, profile: ObservedProfile, owned: ObservedObject, result: SyncResult
    ) -> None:
        try:
            deleted = await asyncio.to_thread(
                self._api.delete, owned.kind, owned.name, self._namespace, uid=owned.uid
            )
        except ApiError as error:
            result.failed = error
            return
        if deleted:
            self._metrics.deleted(owned.kind)
            about = {"object": profile.reference}
            _log.info("%s %s deleted: no longer needed", owned.kind, owned.name, extra=about)

    def _note_error(
        self,
        memory: _Memory,
        desired: Manifest,
        found: str,
        error: ApiError,
        result: SyncResult,
    ) -> None:
        pause, (kind, name) = PAUSES_S.get(error.status), _key(desired)
        if error.transient or pause is None:
            result.failed = error  # the work queue repeats the visit, with its pauses
            return
        failure = refusal_of(f"{kind} {self._namespace}/{name}", error)
        until = self._clock() + pause
        memory.refused[kind, name] = _Refusal(intent_of_live(desired), found, until, failure)
        result.refuse(failure, pause)
        _log.warning("%s", failure.message)

    def _holds(self, refusal: _Refusal, intent: str, found: str) -> bool:
        same = (refusal.intent, refusal.fingerprint) == (intent, found)
        return same and self._clock() < refusal.until


def _key(manifest: Manifest) -> _Key:
    return manifest["kind"], manifest["metadata"]["name"]


def refusal_of(what: str, error: ApiError) -> Failure:
    """Return reason and message for an object that the API server refused."""
    if error.status == INVALID:
        immutable = "immutable" in error.message
        reason = "ImmutableField" if immutable else "Refused"
        hint = "; delete it, and the operator creates it again" if immutable else ""
        return Failure(reason, f"the API server refuses {what}: {error.message}{hint}")
    if "NamespaceTerminating" in error.causes:
        message = f"{what} cannot be created: its namespace is terminating"
        return Failure("NamespaceTerminating", message)
    if error.status == NOT_FOUND:
        return Failure("NamespaceMissing", f"{what} cannot be created: {error.message}")
    message = (
        f"the operator has no right to write {what}: {error.message}; its Role in the chart"
        " grants it"
    )
    return Failure("Forbidden", message)


def _is_ours(live: Object, profile: ObservedProfile) -> bool:
    """Return whether the object is ours, or left by a deleted profile of this name, or orphaned."""
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
