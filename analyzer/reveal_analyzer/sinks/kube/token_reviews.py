"""Of which node a token is, as the API server says: each token is reviewed once."""

from __future__ import annotations

import hashlib
import logging
import threading
import time
from collections.abc import Mapping
from typing import Any

from reveal_analyzer.sinks.kube.api import SinkApi
from reveal_analyzer.stream.origin import TokenOwner
from reveal_contract.kube.errors import ForbiddenError, InvalidObjectError
from reveal_contract.kube.names import COLLECTOR, child_name
from reveal_contract.origin import AUDIENCE

log = logging.getLogger(__name__)

STEP_SECONDS = 0.5  # of reviews in one step
REFUSED_SECONDS = 600.0  # until the next attempt after a refusal
MOST_KNOWN = 16_384  # reviewed tokens; each node has a new one every 48 minutes
MOST_WAITING = 4096
# https://kubernetes.io/docs/reference/access-authn-authz/service-accounts-admin/
_NODE_NAME = "authentication.kubernetes.io/node-name"
_POD_NAME = "authentication.kubernetes.io/pod-name"

_Token = tuple[str, bytes]  # node, and hash of the token


class TokenReviews:
    """Answers from what ``step`` reviewed; see ``ClusterNodes`` for who calls what.

    A token is that of the collector of a node if it is of a pod of the profile's DaemonSet, in the
    ``namespace`` of the analyzer, on this node.
    """

    def __init__(self, api: SinkApi, profile: str, namespace: str) -> None:
        self._api = api
        self._user_prefix = f"system:serviceaccount:{namespace}:"
        self._pod_prefix = f"{child_name(COLLECTOR, profile)}-"
        self._lock = threading.Lock()
        self._known: dict[_Token, TokenOwner] = {}  # the oldest review comes first
        self._waiting: dict[_Token, bytes] = {}
        self._forbidden_s: float | None = None  # until when no attempt is made

    def owner(self, node: str, token: bytes) -> TokenOwner:
        """Return whose token it is; it is reviewed in the next step if that is not known."""
        key = (node, hashlib.blake2b(token, digest_size=16).digest())
        with self._lock:
            if (known := self._known.get(key)) is not None:
                return known
            if self._forbidden_s is not None and time.monotonic() < self._forbidden_s:
                return TokenOwner.UNKNOWN
            if len(self._waiting) < MOST_WAITING:
                self._waiting[key] = token
            return TokenOwner.PENDING

    @property
    def waiting(self) -> bool:
        """Whether there is a token to review."""
        return bool(self._waiting)

    def step(self, now: float) -> None:
        """Review tokens for a limited time; raises ``ApiError``.  ``now`` is monotonic."""
        ends = now + STEP_SECONDS
        while time.monotonic() < ends:
            with self._lock:
                key, token = next(iter(self._waiting.items()), (None, b""))
            if key is None:
                return
            self._review(key, token)

    def _review(self, key: _Token, token: bytes) -> None:
        try:
            status = self._api.review_token(token.decode(errors="replace"), AUDIENCE)
        except ForbiddenError as error:
            log.warning("the origin of slices is not verified: %s", error)
            with self._lock:
                self._waiting.clear()
                self._forbidden_s = time.monotonic() + REFUSED_SECONDS
            return
        except InvalidObjectError as error:  # it must not hold back the others
            log.warning("a token of node %s is not reviewed: %s", key[0], error)
            status = {}
        owner = self._owner_of(status, key[0])
        with self._lock:
            self._waiting.pop(key, None)
            while len(self._known) >= MOST_KNOWN:
                del self._known[next(iter(self._known))]
            self._known[key] = owner

    def _owner_of(self, status: Mapping[str, Any], node: str) -> TokenOwner:
        """Return whose token it is by the status of its review."""
        if not status.get("authenticated") or AUDIENCE not in (status.get("audiences") or ()):
            return TokenOwner.NOBODY
        user = status.get("user") or {}
        extra = user.get("extra") or {}
        pod = next(iter(extra.get(_POD_NAME) or ()), "")
        is_collector = str(user.get("username", "")).startswith(self._user_prefix)
        if is_collector and pod.startswith(self._pod_prefix) and extra.get(_NODE_NAME) == [node]:
            return TokenOwner.NODE
        return TokenOwner.FOREIGN
