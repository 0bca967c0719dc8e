"""What the collectors of a profile say of their nodes, in Redis."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import redis

from reveal_analyzer.telemetry.limited_values import (
    Limited,
    fields_of,
    get_fields,
    request_fields,
    too_long,
)
from reveal_contract import foreign_json
from reveal_contract.cpu_shares import EQUAL_SHARES, CpuShares, SharesError
from reveal_contract.foreign_names import printable
from reveal_contract.names import (
    CPU_SHARES,
    EARLIER_NODE_KEYS,
    PROOF_OF,
    STATUS,
    SUBJECTS,
    key_pattern,
    node_key,
    node_of_key,
)
from reveal_contract.origin import field_data
from reveal_contract.subjects import Identity, SubjectsError, from_rows

log = logging.getLogger(__name__)

_MOST_LISTED = 8  # nodes in a sentence
_MOST_BYTES = 4 << 20  # of a record: one of 1,024 subjects has 300 kB
_MOST_STATUS = 1 << 20

Complete = Callable[[str, tuple[Identity, ...]], tuple[Identity, ...]]  # the subjects of a node
IsProven = Callable[[str, bytes, bytes], bool]  # of a node, its data and their proof


def any_origin(_node: str, _data: bytes, _proof: bytes) -> bool:
    """Take data that proves no origin (``IsProven``)."""
    return True


class _NodeField(NamedTuple):
    """A field of a node."""

    node: str
    field: str

    @property
    def most_bytes(self) -> int:
        """The largest number of bytes that a collector writes."""
        return _MOST_STATUS if self.field == STATUS else _MOST_BYTES


class NodeRecords:
    """What is known of the nodes of a profile, as far as it proves its origin.

    ``is_proven`` decides on that, and ``complete`` adds to subjects what collectors do not know.
    A node without a hash of its own has a collector of an earlier
    version: it writes to a hash that all profiles share.
    """

    def __init__(self, client: redis.Redis, profile: str, is_proven: IsProven = any_origin) -> None:
        self._client, self._profile, self._is_proven = client, profile, is_proven
        self.complete: Complete = lambda _, subjects: subjects
        self._refused: set[_NodeField] = set()  # each is logged once

    def get(self, field: str, nodes: Sequence[str]) -> list[bytes | None]:
        """Return a field of each node, ``None`` where there is none that proves its origin.

        Raises what redis-py raises when Redis is unavailable.
        """
        return self._read([_NodeField(node, field) for node in nodes])

    def fields(self, node: str, fields: Sequence[str]) -> list[bytes | None]:
        """Return several fields of a node, with the checks and errors of ``get``."""
        return self._read([_NodeField(node, field) for field in fields])

    def subjects(self, nodes: Sequence[str]) -> dict[str, tuple[Identity, ...]]:
        """Return the subject tables of nodes; an unusable one is logged and empty."""
        tables = zip(nodes, self.get(SUBJECTS, nodes), strict=True)
        return {node: self.complete(node, subjects_of(node, data)) for node, data in tables}

    def _read(self, keys: Sequence[_NodeField]) -> list[bytes | None]:
        """Return fields that are read with one request, as far as they prove their origin."""
        if not keys:
            return []
        with self._client.pipeline(transaction=False) as pipe:
            for key in keys:
                fields = [key.field, PROOF_OF + key.field]
                request_fields(pipe, node_key(self._profile, key.node), fields, key.most_bytes)
            replies: list[Any] = pipe.execute(raise_on_error=False)
        found = [fields_of(reply, 2) for reply in replies]
        values = [value for value, _ in found]
        for field in {key.field for key in keys} & EARLIER_NODE_KEYS.keys():
            self._add_earlier(field, keys, values)
        return [
            self._usable(key, value, proof)
            for key, value, (_, proof) in zip(keys, values, found, strict=True)
        ]

    def _add_earlier(self, field: str, keys: Sequence[_NodeField], values: list[Limited]) -> None:
        """Fill in what collectors of an earlier version wrote into a field."""
        others = [
            index for index, value in enumerate(values)
            if value is None and keys[index].field == field
        ]  # fmt: skip
        if not others:
            return
        nodes = [keys[index].node for index in others]
        most = keys[others[0]].most_bytes
        earlier = get_fields(self._client, EARLIER_NODE_KEYS[field], nodes, most)
        for index, value in zip(others, earlier, strict=True):
            values[index] = value

    def _usable(self, key: _NodeField, value: Limited, proof: Limited) -> bytes | None:
        """Return a value that is within its limit and proves its origin; log any other."""
        if value is None:
            return None
        if isinstance(value, int):
            self._refuse(key, f"they have {too_long(value, key.most_bytes)}")
            return None
        signed = field_data(key.field, value)
        if not self._is_proven(key.node, signed, proof if isinstance(proof, bytes) else b""):
            self._refuse(key, "they do not prove their origin")
            return None
        self._refused.discard(key)
        return value

    def _refuse(self, key: _NodeField, why: str) -> None:
        if key not in self._refused:
            self._refused.add(key)
            log.warning("%s of node %s are not used: %s", key.field, key.node, why)


def node_subjects(
    client: redis.Redis, profile: str, nodes: Sequence[str]
) -> dict[str, tuple[Identity, ...]]:
    """Return the subject tables of nodes; an unusable one is logged and empty."""
    return NodeRecords(client, profile).subjects(nodes)


def node_shares(client: redis.Redis, profile: str, node: str) -> CpuShares:
    """Return the CPU shares of a node's subjects; equal ones where none can be used."""
    [data] = NodeRecords(client, profile).get(CPU_SHARES, [node])
    return shares_of(node, data)


def shares_of(node: str, data: bytes | str | None) -> CpuShares:
    """Return the CPU shares that were published; equal ones where they cannot be used."""
    try:
        return CpuShares.from_rows(foreign_json.loads(data, _MOST_BYTES)) if data else EQUAL_SHARES
    except (SharesError, ValueError) as error:
        log.warning("CPU shares on node %s are not known: %s", node, error)
        return EQUAL_SHARES


def subjects_of(node: str, data: bytes | str | None) -> tuple[Identity, ...]:
    """Return the subject table that was published; an unusable one is logged and empty."""
    try:
        return from_rows(foreign_json.loads(data, _MOST_BYTES)) if data else ()
    except (SubjectsError, ValueError) as error:
        log.warning("subjects of node %s are not known: %s", node, error)
        return ()


def known_nodes(client: redis.Redis, profile: str) -> list[str]:
    """Return the nodes of which there is anything, by name; raises what redis-py raises."""
    keys = client.scan_iter(match=key_pattern(profile), count=1000)
    return sorted({node_of_key(key.decode(errors="replace")) for key in keys} - {""})


def nodes_text(nodes: Sequence[str]) -> str:
    """Return the end of a sentence on an unknown node: those that there are."""
    names = ", ".join(printable(node) for node in nodes[:_MOST_LISTED])
    return f"; nodes of the profile: {names}" if names else ""
