"""Whether a slice comes from the node whose name it has.

A slice names a key, which is made of a token.  The node's collector wrote the token to Redis, and
the API server says of which node it is.  That takes some requests for each new token, in which the
slices of it wait; then a slice costs some microseconds.  The next analyzer finds the verified key
where no collector can write: another one may have overwritten the token meanwhile.
"""

from __future__ import annotations

import hmac
import time
from collections import OrderedDict
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field
from enum import Enum
from itertools import islice
from typing import Any

import redis

from reveal_analyzer.formatting import list_some
from reveal_analyzer.stream.consumer import StreamEntry
from reveal_analyzer.telemetry.degraded import Degradation
from reveal_analyzer.telemetry.limited_values import fields_of, request_fields
from reveal_contract.names import FIELD_DATA, FIELD_PROOF, TOKENS, node_key, proven_key, shard
from reveal_contract.origin import (
    ID_BYTES,
    MAX_TOKEN_BYTES,
    OriginKey,
    key_of,
    key_of_secret,
    prove,
)

_DATA, _PROOF = FIELD_DATA.encode(), FIELD_PROOF.encode()
UNPROVEN_SLICES = "UnprovenSlices"  # reason of the condition Degraded
NO_PROOF = "it does not prove its origin"
WRONG_PROOF = "its proof of origin is wrong"
FOREIGN_TOKEN = "its proof of origin is made of the token of another node"  # noqa: S105
# Of a node that proved its origin, nothing else is taken for so long, also while nothing arrives:
# whoever can write to the stream can trim it, too.  It is counted from when a slice is read, as
# whoever adds a slice chooses its id.  The price: after a rollback, slices of a collector of an
# earlier version are refused for so long.
PROVEN_SECONDS = 600.0
WAIT_SECONDS = 10.0  # for the API server; slices that must prove their origin wait _LAST_SECONDS
_LAST_SECONDS = 60.0
_SHARED_SECONDS = 7200  # that a key is verified: its token is valid for an hour
_ASK_SECONDS, _ASK_AGAIN_SECONDS = 0.25, 10.0  # about a token that is pending, or not known
_MOST_ASKED = 64  # keys that are looked for together
_KEYS_OF_NODE = 16  # a token is renewed after 48 minutes
_MOST_WAITING = 256  # slices of a key
_STILL_SECONDS = 300.0  # a refusal is reported for so long
_MOST_NAMED = 3  # names in a message


class TokenOwner(Enum):
    """What the API server says of a token."""

    NODE = "of the collector of the node"
    FOREIGN = "of something else"
    NOBODY = "not valid, or not any more"
    PENDING = "not known yet"
    UNKNOWN = "cannot be known"


Review = Callable[[str, bytes], TokenOwner]  # of a token that is in the record of a node


@dataclass
class _Key:
    """A key that slices of a node name, and the slices that wait until its owner is known."""

    node: str
    id: bytes
    since_s: float
    owner: TokenOwner = TokenOwner.PENDING
    key: OriginKey | None = None
    token: bytes = b""
    is_verified: bool = False  # by another analyzer
    due_s: float = 0.0
    waiting: list[StreamEntry] = field(default_factory=list)

    def proves(self, proof: bytes, data: bytes) -> bool:
        """Whether a proof is right, and made with the token of the collector of the node."""
        if self.owner is not TokenOwner.NODE or self.key is None:
            return False
        return hmac.compare_digest(proof, prove(self.key, data))

    def waits(self, entry: StreamEntry) -> bool:
        """Take a slice if the owner is not known yet."""
        if self.owner is not TokenOwner.PENDING or len(self.waiting) >= _MOST_WAITING:
            return False
        self.waiting.append(entry)
        return True

    def decide(self, owner: TokenOwner, now: float) -> None:
        self.owner = owner
        self.due_s = now + (_ASK_SECONDS if owner is TokenOwner.PENDING else _ASK_AGAIN_SECONDS)

    def released(self) -> list[StreamEntry]:
        """Remove and return the slices that need not wait any longer."""
        if self.owner is TokenOwner.PENDING:
            return []
        waiting, self.waiting = self.waiting, []
        return waiting


class OriginCheck:
    """Decides on slices; ``required`` refuses all that do not prove their origin.

    Else they are taken of nodes that have not proved their origin lately.  ``review`` sends no
    request.
    """

    def __init__(self, profile: str, review: Review, *, required: bool) -> None:
        self._profile, self._review, self._required = profile, review, required
        self._keys: dict[str, OrderedDict[bytes, _Key]] = {}  # those used last are at the end
        self._open: dict[tuple[str, bytes], _Key] = {}  # whose owner is not known
        self._proven: dict[str, float] = {}  # when a node last proved its origin
        self._refused: dict[str, float] = {}  # nodes, and when their last slice was refused

    def refusal(self, entry: StreamEntry, node: str) -> str | None:
        """Return why a slice is not taken, "" if it is; None for one that waits here."""
        proof = entry.fields.get(_PROOF, b"")
        if len(proof) <= ID_BYTES:
            return self._without_proof(entry, node)
        known = self._key(node, proof[:ID_BYTES])
        if known is None:  # somebody makes up keys: when one of them is decided, there is room
            return None if self._waits(entry, node) else self._refuse(node, NO_PROOF)
        return None if known.waits(entry) else self._verdict(entry, known, proof)

    def is_proven(self, node: str, data: bytes, proof: bytes) -> bool:
        """Return whether data of a node prove their origin, or need not.

        Any thread may call it.
        """
        keys = self._keys.get(node)
        known = None if keys is None else keys.get(proof[:ID_BYTES])
        if known is not None and known.proves(proof, data):
            return True
        return not self._must_prove(node)

    def has_keys_of(self, node: str) -> bool:
        """Return whether slices of a node with a proof are read here."""
        return node in self._keys

    def decided(self, client: redis.Redis) -> list[StreamEntry]:
        """Return slices that wait no longer: ``refusal`` decides on them now.

        Raises what redis-py raises.
        """
        if not self._open:
            return []
        now = time.monotonic()
        due = list(islice((each for each in self._open.values() if each.due_s <= now), _MOST_ASKED))
        self._find_tokens(client, [each for each in due if not each.token])
        for known in due:
            known.decide(self._owner(known, now), now)
        self._share(client, due)
        for known in due:
            if known.owner not in (TokenOwner.PENDING, TokenOwner.UNKNOWN):
                del self._open[known.node, known.id]
        return [entry for known in due for entry in known.released()]

    def forget(self, nodes: Iterable[str]) -> None:
        """Forget nodes that are gone; not yet that they proved their origin."""
        for node in nodes:
            for key_id in self._keys.pop(node, ()):
                self._open.pop((node, key_id), None)
        for node in [each for each in self._proven if not self._proved_lately(each)]:
            del self._proven[node]

    def forget_shards(self, shards: Collection[int]) -> None:
        """Forget the nodes of shards that another analyzer reads, and drop what waits of them."""
        self.forget([node for node in self._keys if shard(node) in shards])

    def degradations(self) -> list[Degradation]:
        """Return that slices were refused lately."""
        oldest = time.monotonic() - _STILL_SECONDS
        self._refused = {node: last for node, last in self._refused.items() if last >= oldest}
        if not self._refused:
            return []
        named = list_some(sorted(map(repr, self._refused)), most=_MOST_NAMED)
        text = (
            f"slices in the name of {named} are refused, as they do not prove that they come from"
            " there: somebody else writes to this Redis"
        )
        text += ", or a collector is of an earlier version"
        if not self._required:
            text += f", for less than {PROVEN_SECONDS / 60:g} min"
        return [Degradation(UNPROVEN_SLICES, len(self._refused), text)]

    def _verdict(self, entry: StreamEntry, known: _Key, proof: bytes) -> str | None:
        """Decide on a slice by its proof, whose key is decided."""
        node = known.node
        if known.owner is TokenOwner.FOREIGN:
            return self._refuse(node, FOREIGN_TOKEN)
        if known.owner is not TokenOwner.NODE:
            return self._without_proof(entry, node)
        if not known.proves(proof, entry.fields[_DATA]):
            return self._refuse(node, WRONG_PROOF)
        self._proven[node] = time.monotonic()
        return ""

    def _without_proof(self, entry: StreamEntry, node: str) -> str | None:
        if self._must_prove(node):
            return self._refuse(node, NO_PROOF)
        # it must not overtake those that may prove their origin: they decide on it, too
        return None if self._waits(entry, node) else ""

    def _must_prove(self, node: str) -> bool:
        """Whether nothing of a node is taken without a proof."""
        return self._required or self._proved_lately(node)

    def _proved_lately(self, node: str) -> bool:
        last_s = self._proven.get(node)
        return last_s is not None and time.monotonic() - last_s < PROVEN_SECONDS

    def _waits(self, entry: StreamEntry, node: str) -> bool:
        """Let a slice wait until a key of its node is decided, if there is one to decide."""
        return any(known.waits(entry) for known in self._keys.get(node, {}).values())

    def _refuse(self, node: str, reason: str) -> str:
        self._refused[node] = time.monotonic()
        return reason

    def _key(self, node: str, key_id: bytes) -> _Key | None:
        """Return what is known of a key; None where a node has too many keys."""
        keys = self._keys.setdefault(node, OrderedDict())
        if key_id in keys:
            keys.move_to_end(key_id)  # at no moment is it absent: other threads use it
        elif len(keys) >= _KEYS_OF_NODE and not self._drop_unused(keys):
            return None
        else:
            keys[key_id] = self._open[node, key_id] = _Key(node, key_id, time.monotonic())
        return keys[key_id]

    def _drop_unused(self, keys: dict[bytes, _Key]) -> bool:
        """Drop the key that was not used for longest, one that proves nothing first."""
        decided = [known for known in keys.values() if known.owner is not TokenOwner.PENDING]
        useless = [known for known in decided if known.owner is not TokenOwner.NODE]
        for known in (useless or decided)[:1]:
            del keys[known.id]
            self._open.pop((known.node, known.id), None)
        return bool(decided)

    def _owner(self, known: _Key, now: float) -> TokenOwner:
        """Return the owner of the token of which a key is made.

        A collector announces the token first: without one the key is made of nothing.
        """
        if known.key is None:
            return TokenOwner.UNKNOWN
        if known.is_verified:  # the pod may be gone since, and its slices are still in the stream
            return TokenOwner.NODE
        owner = self._review(known.node, known.token)
        patience = _LAST_SECONDS if self._must_prove(known.node) else WAIT_SECONDS
        waited = now - known.since_s >= patience
        return TokenOwner.UNKNOWN if owner is TokenOwner.PENDING and waited else owner

    def _share(self, client: redis.Redis, keys: Iterable[_Key]) -> None:
        """Let other analyzers know which keys were verified: they read later what is signed now."""
        new = [each for each in keys if each.owner is TokenOwner.NODE and not each.is_verified]
        if not new:
            return
        with client.pipeline(transaction=False) as pipe:
            for known in new:
                key = proven_key(self._profile, known.node, known.id)
                pipe.set(key, known.key.secret if known.key else b"", ex=_SHARED_SECONDS)
            pipe.execute(raise_on_error=False)  # a full Redis: others ask the API server

    def _find_tokens(self, client: redis.Redis, keys: list[_Key]) -> None:
        """Request verified keys and the tokens of nodes, and find those of these slices."""
        if not keys:
            return
        with client.pipeline(transaction=False) as pipe:
            for known in keys:
                record = node_key(self._profile, known.node)
                request_fields(pipe, record, TOKENS, MAX_TOKEN_BYTES)
                pipe.get(proven_key(self._profile, known.node, known.id))
            found: list[Any] = pipe.execute(raise_on_error=False)
        for known, reply, secret in zip(keys, found[::2], found[1::2], strict=True):
            if isinstance(secret, Exception):
                raise secret
            known.is_verified = secret is not None
            if secret and (key := key_of_secret(secret)).id == known.id:
                known.key = key
            for token in fields_of(reply, len(TOKENS)):
                if isinstance(token, bytes) and token and (key := key_of(token)).id == known.id:
                    known.token, known.key = token, key
