"""The proof of origin: what collectors and analyzers of all versions agree about."""

from __future__ import annotations

import hashlib

from hypothesis import given
from hypothesis import strategies as st

from reveal_contract.origin import ID_BYTES, key_of, prove

TOKENS = st.binary(min_size=1, max_size=2048)


def test_a_proof_is_the_id_of_the_key_and_a_keyed_blake2b() -> None:
    secret = hashlib.blake2b(b"token", digest_size=32, person=b"reveal-secret").digest()
    key_id = hashlib.blake2b(secret, digest_size=8, person=b"reveal-key-id").digest()
    code = hashlib.blake2b(b"data", digest_size=16, key=secret).digest()
    assert prove(key_of(b"token"), b"data") == key_id + code


@given(TOKENS, TOKENS, st.binary(), st.binary())
def test_another_token_or_another_slice_has_another_proof(
    token: bytes, other: bytes, data: bytes, changed: bytes
) -> None:
    proof = prove(key_of(token), data)
    assert proof == prove(key_of(token), data)
    assert (prove(key_of(token), changed) == proof) == (changed == data)
    assert (prove(key_of(other), data) == proof) == (other == token)
    assert (prove(key_of(other), data)[:ID_BYTES] == proof[:ID_BYTES]) == (other == token)
