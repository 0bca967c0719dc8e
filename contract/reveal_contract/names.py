"""Every key, field and label that components agree on, in one place."""

from __future__ import annotations

import re
import zlib

SHARDS = 64
GROUP = "reveal-analyzer"
CATALOGUE_KEY = "reveal:catalogue"  # hash: table key (hex) -> announced channel table
NODES_KEY = "reveal:nodes"  # hash: node -> JSON of what its collector said last
FACTS_KEY = "reveal:facts"  # hash: node -> JSON of its facts
SUBJECTS_KEY = "reveal:subjects"  # hash: node -> JSON of its subject table, written on change

# fields of one stream message (one node, one slice)
FIELD_NODE = "n"
FIELD_BOOT = "b"
FIELD_SEQUENCE = "q"
FIELD_TABLE = "s"
FIELD_TIME = "t"
FIELD_DATA = "d"

DEFAULT_PROFILE = "default"
REDIS_VARIABLE = "REVEAL_REDIS_URL"  # of the environment: a command line shows its passwords

_CAPITAL_RUN = re.compile(r"([A-Z]+)([A-Z][a-z])")
_CASE_CHANGE = re.compile(r"([a-z])([A-Z])")
_NOT_NAME = re.compile(r"[^a-z0-9]+")


def shard(node: str) -> int:
    """The shard that carries a node's slices: stable for ever, spread evenly."""
    return zlib.crc32(node.encode()) % SHARDS


def samples_key(profile: str, number: int) -> str:
    """The stream of one shard; the braces put all keys of a shard into one cluster slot."""
    return f"reveal:{{{profile}:{number}}}:samples"


def owner_key(profile: str, number: int) -> str:
    """The lease that says which analyzer owns the shard."""
    return f"reveal:{{{profile}:{number}}}:owner"


def analyzers_key(profile: str) -> str:
    """Sorted set of the analyzers that are alive: name -> when it counts as dead (server ms)."""
    return f"reveal:{{{profile}}}:analyzers"


def fleet_key(profile: str, part: str = "summaries") -> str:
    """What analyzers tell each other of their nodes.

    ``summaries`` is a hash, node -> its last minute; ``leader`` the lease of the one that
    compares them; ``cases`` what it has found so far; ``states`` a hash, analyzer -> how many
    nodes it hears and learns.
    """
    return f"reveal:{{{profile}}}:fleet:{part}"


def snake(name: str) -> str:
    """A kernel field name as a catalogue word: ``TCPLostRetransmit`` -> ``tcp_lost_retransmit``."""
    spaced = _CASE_CHANGE.sub(r"\1_\2", _CAPITAL_RUN.sub(r"\1_\2", name))
    return _NOT_NAME.sub("_", spaced.lower()).strip("_")


def camel_case(name: str) -> str:
    """A Python field name as JSON has it: ``first_seen`` -> ``firstSeen``."""
    head, *tail = name.split("_")
    return head + "".join(word.capitalize() for word in tail)
