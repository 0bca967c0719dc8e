"""Proofs with the token of a file that the kubelet renews."""

from __future__ import annotations

from pathlib import Path

import pytest

from reveal_collector.shipping import origin_proof
from reveal_collector.shipping.origin_proof import OriginProof
from reveal_contract.names import FIELD_PROOF, PROOF_OF
from reveal_contract.origin import MAX_TOKEN_BYTES, key_of, prove


@pytest.fixture(autouse=True)
def _read_always(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(origin_proof, "READ_SECONDS", 0.0)


def test_slices_are_proven_with_the_last_token(tmp_path: Path) -> None:
    file = tmp_path / "token"
    proof = OriginProof(str(file))
    for token in (b"first", b"second"):
        file.write_bytes(token + b"\n")
        proof.refresh()
        assert proof.token == token
        assert proof.of_slice(b"data") == (FIELD_PROOF, prove(key_of(token), b"data"))
        proven = prove(key_of(token), b"facts\0{}")
        assert proof.of_field("facts", b"{}") == (f"{PROOF_OF}facts", proven)


def test_without_a_file_nothing_is_proven() -> None:
    proof = OriginProof("")
    proof.refresh()
    assert (proof.token, proof.of_slice(b"data"), proof.of_field("facts", b"")) == (None, (), ())


@pytest.mark.parametrize("content", [None, b"", b" \n", b"t" * (MAX_TOKEN_BYTES + 1)])
def test_a_file_without_a_token_leaves_the_last_token(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, content: bytes | None
) -> None:
    file = tmp_path / "token"
    file.write_bytes(b"first")
    proof = OriginProof(str(file))
    proof.refresh()
    file.unlink()
    if content is not None:
        file.write_bytes(content)
    proof.refresh()
    proof.refresh()
    assert proof.token == b"first"
    assert len(caplog.records) == 1
    assert str(file) in caplog.text


def test_a_token_is_not_read_for_each_slice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(origin_proof, "READ_SECONDS", 60.0)
    file = tmp_path / "token"
    file.write_bytes(b"first")
    proof = OriginProof(str(file))
    proof.refresh()
    file.write_bytes(b"second")
    proof.refresh()
    assert proof.token == b"first"
