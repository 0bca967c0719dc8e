"""Names that components share do not change after the first release."""

from __future__ import annotations

import re
from collections import Counter
from fnmatch import fnmatchcase

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reveal_contract import names

_nodes = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=60)


def test_shards_are_those_of_the_first_release() -> None:
    assert [names.shard(node) for node in ("node-0", "node-1", "gpu-a100-17", "ü")] == [
        9,
        31,
        34,
        21,
    ]


@given(_nodes)
def test_every_node_has_a_shard(node: str) -> None:
    assert names.shard(node) == names.shard(node)
    assert 0 <= names.shard(node) < names.SHARDS


def test_nodes_spread_evenly() -> None:
    load = Counter(names.shard(f"node-{number}") for number in range(6_400))
    assert len(load) == names.SHARDS
    assert max(load.values()) < 2 * min(load.values())


def test_keys_are_those_of_the_first_release() -> None:
    assert names.samples_key("default", 7) == "reveal:{default:7}:samples"
    assert names.owner_key("default", 7) == "reveal:{default:7}:owner"
    assert names.analyzers_key("default") == "reveal:{default}:analyzers"
    assert names.node_key("default", "n1") == "reveal:{default:44}:node:n1"
    assert names.table_key("default", b"\x00\xff") == "reveal:{default}:table:00ff"
    assert (
        names.table_changes_key("default", b"\x00\xff", "n1") == "reveal:{default}:changes:00ff:n1"
    )
    assert names.EARLIER_TABLES_KEY == "reveal:catalogue"
    assert names.EARLIER_NODE_KEYS["facts"] == "reveal:facts"
    assert (names.SHARDS, names.GROUP) == (64, "reveal-analyzer")


@pytest.mark.parametrize("number", [0, 63])
def test_all_keys_of_a_shard_hash_alike(number: int) -> None:
    """Redis Cluster hashes what stands between the first braces."""
    node = next(f"n{i}" for i in range(10_000) if names.shard(f"n{i}") == number)
    keys = (names.samples_key("p", number), names.owner_key("p", number), names.node_key("p", node))
    tags = {match.group(1) for key in keys if (match := re.search(r"\{(.+?)\}", key))}
    assert len(tags) == 1


@pytest.mark.parametrize("profile", ["p", "scan-a*b-1", "[x]"])
def test_the_pattern_of_a_profile_is_that_of_all_its_keys_and_of_no_other(profile: str) -> None:
    keys = [
        names.samples_key(profile, 7), names.analyzers_key(profile), names.fleet_key(profile),
        names.node_key(profile, "n"), names.table_key(profile, b"t"),
        names.table_changes_key(profile, b"t", "n"),
    ]  # fmt: skip
    pattern = _as_glob(names.key_pattern(profile))
    assert [key for key in keys if not fnmatchcase(key, pattern)] == []
    others = [
        names.samples_key(f"{profile}2", 7),
        names.samples_key("scan-axb-1", 7),
        "reveal:facts",
    ]
    assert [key for key in others if fnmatchcase(key, pattern)] == []


def _as_glob(pattern: str) -> str:
    """Return the pattern of Redis for ``fnmatch``, which escapes by brackets."""
    return re.sub(r"\\(.)", lambda found: f"[{found[1]}]", pattern)


def test_fields_are_short_and_differ() -> None:
    fields = [getattr(names, name) for name in dir(names) if name.startswith("FIELD_")]
    assert sorted(fields) == ["b", "d", "n", "p", "q", "s", "t"]


@pytest.mark.parametrize(
    ("field", "word"),
    [
        ("TCPLostRetransmit", "tcp_lost_retransmit"),
        ("InNoRoutes", "in_no_routes"),
        ("RetransSegs", "retrans_segs"),
        ("HugePages_Total", "huge_pages_total"),
        ("Active(anon)", "active_anon"),
        ("pgpgin", "pgpgin"),
        ("NET_RX", "net_rx"),
    ],
)
def test_kernel_fields_become_words(field: str, word: str) -> None:
    assert names.snake(field) == word


@given(st.text(max_size=40))
def test_any_field_becomes_part_of_a_metric_name(field: str) -> None:
    assert re.fullmatch(r"([a-z0-9]+(_[a-z0-9]+)*)?", names.snake(field))
