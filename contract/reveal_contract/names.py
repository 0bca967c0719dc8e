"""Keys, fields and labels that the components share."""

from __future__ import annotations

import re
import zlib

SHARDS = 64
GROUP = "reveal-analyzer"
CATALOGUE_KEY = "reveal:catalogue"  # hash: table key (hex) -> announced channel table
# Two profiles may watch the same node: what their collectors say of it is in ``node_key``, and in
# these two keys for analyzers of earlier versions, where the last writer wins.
NODES_KEY = "reveal:nodes"  # hash: node -> JSON of its collector's last report
SUBJECTS_KEY = "reveal:subjects"  # hash: node -> JSON of its subject table, written on change
FACTS_KEY = "reveal:facts"  # hash: node -> JSON of its facts
NODES, SUBJECTS = "nodes", "subjects"  # parts of ``node_key``

# fields of one stream message (one node, one slice)
FIELD_NODE = "n"
FIELD_BOOT = "b"
FIELD_SEQUENCE = "q"
FIELD_TABLE = "s"
FIELD_TIME = "t"
FIELD_DATA = "d"

DEFAULT_PROFILE = "default"
REDIS_VARIABLE = (
    "REVEAL_REDIS_URL"  # in the environment, as others can read passwords on a command line
)

_CAPITAL_RUN = re.compile(r"([A-Z]+)([A-Z][a-z])")
_CASE_CHANGE = re.compile(r"([a-z])([A-Z])")
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


def node_key(profile: str, part: str) -> str:
    """Return the hash node -> JSON of a profile: ``NODES`` or ``SUBJECTS``.

    A collector removes its entries when it ends.
    """
    return f"reveal:{{{profile}}}:{part}"


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


def snake(name: str) -> str:
    """Return ``tcp_lost_retransmit`` for the kernel's ``TCPLostRetransmit``."""
    spaced = _CASE_CHANGE.sub(r"\1_\2", _CAPITAL_RUN.sub(r"\1_\2", name))
    return _NOT_NAME.sub("_", spaced.lower()).strip("_")


def camel_case(name: str) -> str:
    """Return a Python field name in camelCase: ``first_seen`` -> ``firstSeen``."""
    head, *tail = name.split("_")
    return head + "".join(word.capitalize() for word in tail)
