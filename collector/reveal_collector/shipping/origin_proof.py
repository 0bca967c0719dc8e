"""The proofs of origin of what this node sends, with a token that the kubelet renews in a file."""

from __future__ import annotations

import logging
import time
from pathlib import Path

from reveal_collector.shipping.resp import Command
from reveal_contract.names import FIELD_PROOF, PROOF_OF
from reveal_contract.origin import MAX_TOKEN_BYTES, OriginKey, field_data, key_of, prove

log = logging.getLogger(__name__)

READ_SECONDS = 60.0  # a token is renewed when a fifth of its hour is left


class OriginProof:
    """Proves slices and fields with the token of a file; without a file it proves nothing.

    A token that cannot be read is logged: the last one stays in use.
    """

    def __init__(self, path: str) -> None:
        self._path = Path(path) if path else None
        self._due_s = 0.0
        self._error = ""
        self._key: OriginKey | None = None
        self.token: bytes | None = None

    def refresh(self) -> None:
        """Read the token again if it is due."""
        now = time.monotonic()
        if self._path is None or now < self._due_s:
            return
        self._due_s = now + READ_SECONDS
        try:
            token = _read(self._path)
        except (OSError, ValueError) as error:
            self._note(f"slices prove their origin with the last token or not at all: {error}")
            return
        self._note("")
        if token != self.token:
            self.token, self._key = token, key_of(token)

    def of_slice(self, data: bytes) -> Command:
        """Return the arguments of XADD with the proof of a slice; none without a token."""
        return () if self._key is None else (FIELD_PROOF, prove(self._key, data))

    def of_field(self, field: str, value: bytes) -> Command:
        """Return the arguments of HSET with the proof of a field; none without a token."""
        if self._key is None:
            return ()
        return PROOF_OF + field, prove(self._key, field_data(field, value))

    def _note(self, error: str) -> None:
        if error and error != self._error:
            log.warning("%s", error)
        self._error = error


def _read(path: Path) -> bytes:
    with path.open("rb") as file:
        token = file.read(MAX_TOKEN_BYTES + 1).strip()
    if not 0 < len(token) <= MAX_TOKEN_BYTES:
        raise ValueError(f"{path} holds no token")
    return token
