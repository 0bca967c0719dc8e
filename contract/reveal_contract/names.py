"""Keys, fields and labels that the components share."""

from __future__ import annotations

import re
import zlib

SHARDS = 64
GROUP = "reveal-analyzer"
_NODE = ":node:"  # in the key of a node, before its name
# Every key has an end.  Who writes a key renews its time limit as long as it is needed.
KEPT_SECONDS = 3600  # after the last sign of its writer: streams, and what is known of a node

# fields of ``node_key``, all JSON but for the tokens
STATUS = "status"  # the last status of the node's collector
SUBJECTS = "subjects"  # the node's subject table
CPU_SHARES = "cpuShares"  # of its subjects, what they are entitled to
FACTS = "facts"
# Tokens that prove the origin of slices: each is in the field of the minute of its announcement, so
# that those of the collectors of the last minutes stay.  See ``origin``.
TOKENS = tuple(f"token{minute}" for minute in range(8))

PROOF_OF = "proofOf:"  # before the name of a field: the field with the proof of its origin

# Hashes of collectors of an earlier version, shared by all profiles: nobody else writes them.
EARLIER_TABLES_KEY = "reveal:catalogue"  # table key (hex) -> channel table as JSON
EARLIER_NODE_KEYS = {STATUS: "reveal:nodes", SUBJECTS: "reveal:subjects", FACTS: "reveal:facts"}

# fields of one stream message (one node, one slice)
FIELD_NODE = "n"
FIELD_BOOT = "b"
FIELD_SEQUENCE = "q"
FIELD_TABLE = "s"
FIELD_TIME = "t"
FIELD_DATA = "d"
FIELD_PROOF = "p"  # of its origin; collectors off Kubernetes and of earlier versions have none

DEFAULT_PROFILE = "default"
REDIS_VARIABLE = (
    "REVEAL_REDIS_URL"  # in the environment, as others can read passwords on a command line
)

_CAPITAL_RUN = re.compile(r"([A-Z]+)([A-Z][a-z])")
_CASE_CHANGE = re.compile(r"([a-z])([A-Z])")
_GLOB = re.compile(r"([\\*?\[\]])")
_NOT_NAME = re.compile(r"[^a-z0-9]+")


def shard(node: str) -> int:
    """Return the shard of a node's slices: it never changes, and nodes spread evenly."""
    return zlib.crc32(node.encode()) % SHARDS


def samples_key(profile: str, number: int) -> str:
    """Return the stream of one shard; the braces put all keys of a shard into one cluster slot."""
    return f"reveal:{{{profile}:{number}}}:samples"


def owner_key(profile: str, number: int) -> str:
    """Return the lease of the analyzer that owns the shard."""
    return f"reveal:{{{profile}:{number}}}:owner"


def node_states_key(profile: str, number: int) -> str:
    """Return the hash of what was learned about the nodes of the shard: node -> saved state."""
    return f"reveal:{{{profile}:{number}}}:states"


def node_key(profile: str, node: str) -> str:
    """Return the hash of what the collector of a profile says of its node.

    Two profiles may watch the same node, with other sources.
    """
    return f"reveal:{{{profile}:{shard(node)}}}{_NODE}{node}"


def node_of_key(key: str) -> str:
    """Return the node whose ``node_key`` this is; "" for any other key."""
    return key.partition(_NODE)[2]


def proven_key(profile: str, node: str, key_id: bytes) -> str:
    """Return the string that says that an analyzer verified a key of ``origin`` of a node."""
    return f"reveal:{{{profile}:{shard(node)}}}:proven:{key_id.hex()}:of:{node}"


def table_key(profile: str, table: bytes) -> str:
    """Return the string with the announcement of a channel table."""
    return f"reveal:{{{profile}}}:table:{table.hex()}"


def table_changes_key(profile: str, table: bytes, node: str) -> str:
    """Return the string with a channel table as its changes of another table.

    Each node has its own: nodes with the same table need not have changed the same other one.
    """
    return f"reveal:{{{profile}}}:changes:{table.hex()}:{node}"


def key_pattern(profile: str) -> str:
    """Return the glob pattern of SCAN for all keys of a profile."""
    escaped = _GLOB.sub(r"\\\1", profile)
    return f"reveal:{{{escaped}[:}}]*"


def analyzers_key(profile: str) -> str:
    """Return the sorted set of live analyzers: name -> time at which it counts as dead (ms)."""
    return f"reveal:{{{profile}}}:analyzers"


def fleet_key(profile: str, part: str = "summaries") -> str:
    """Return a key of the data that analyzers share.

    ``summaries`` is a hash, node -> its last minute.  ``leader`` is the lease of the analyzer that
    compares them, ``cases`` are its findings.  ``states`` is a hash, analyzer -> its counts of
    reporting and learning nodes.
    """
    return f"reveal:{{{profile}}}:fleet:{part}"


def evidence_key(profile: str, name: str) -> str:
    """Return the string with the samples of a finding: a compressed recording."""
    return f"reveal:{{{profile}}}:evidence:of:{name}"


def evidence_index_key(profile: str) -> str:
    """Return the sorted set of the findings whose samples are kept: name -> last write (s)."""
    return f"reveal:{{{profile}}}:evidence:names"


def evidence_unfinished_key(profile: str) -> str:
    """Return the hash of the findings whose samples are not complete: name -> finding (JSON)."""
    return f"reveal:{{{profile}}}:evidence:unfinished"


def history_key(profile: str, node: str, hour: int) -> str:
    """Return the string with an hour (since the epoch) of a node: one value a second."""
    return f"reveal:{{{profile}:{shard(node)}}}:history:{hour}:of:{node}"


def snake(name: str) -> str:
    """Return ``tcp_lost_retransmit`` for the kernel's ``TCPLostRetransmit``."""
    spaced = _CASE_CHANGE.sub(r"\1_\2", _CAPITAL_RUN.sub(r"\1_\2", name))
    return _NOT_NAME.sub("_", spaced.lower()).strip("_")


def camel_case(name: str) -> str:
    """Return a Python field name in camelCase: ``first_seen`` -> ``firstSeen``."""
    head, *tail = name.split("_")
    return head + "".join(word.capitalize() for word in tail)
