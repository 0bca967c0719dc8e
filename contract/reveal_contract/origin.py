"""The proof that a slice comes from the node whose name it has.

A collector has a token of its pod, which the API server signed for analyzers.  It writes the token
to where only analyzers read, and adds to each slice a message authentication code (BLAKE2b with a
key, RFC 7693) whose key is made of the token.  The API server confirms of which node a token is.
"""

from __future__ import annotations

# the function of hashlib; importing hashlib loads OpenSSL into a collector's memory
from _blake2 import blake2b
from typing import NamedTuple

AUDIENCE = "reveal-analyzer"  # of the tokens: the API server itself does not accept them
ID_BYTES = 8  # of the key, at the begin of a proof
MAX_TOKEN_BYTES = 16 << 10
_CODE_BYTES, _SECRET_BYTES = 16, 32
_OF_SECRET, _OF_ID = b"reveal-secret", b"reveal-key-id"


class OriginKey(NamedTuple):
    """A key that is made of a token; ``id`` reveals nothing of it."""

    id: bytes
    secret: bytes


def key_of(token: bytes) -> OriginKey:
    """Return the key that is made of a token."""
    return key_of_secret(blake2b(token, digest_size=_SECRET_BYTES, person=_OF_SECRET).digest())


def key_of_secret(secret: bytes) -> OriginKey:
    """Return the key of a secret that was made of a token."""
    return OriginKey(blake2b(secret, digest_size=ID_BYTES, person=_OF_ID).digest(), secret)


def prove(key: OriginKey, data: bytes) -> bytes:
    """Return the proof of a slice: the id of the key, and the code of the wire message ``data``."""
    return key.id + blake2b(data, digest_size=_CODE_BYTES, key=key.secret).digest()


def field_data(field: str, value: bytes) -> bytes:
    """Return what is proven of a field of ``names.node_key``: its name and its value."""
    return field.encode() + b"\0" + value
