"""Names that components share do not change after the first release."""

from __future__ import annotations

import re
from collections import Counter

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
    assert names.CATALOGUE_KEY == "reveal:catalogue"
    assert names.NODES_KEY == "reveal:nodes"
    assert names.node_key("default", names.NODES) == "reveal:{default}:nodes"
    assert (names.SHARDS, names.GROUP) == (64, "reveal-analyzer")


@pytest.mark.parametrize("number", [0, 63])
def test_all_keys_of_a_shard_hash_alike(number: int) -> None:
    """Redis Cluster hashes what stands between the first braces."""
    keys = (names.samples_key("p", number), names.owner_key("p", number))
    tags = {match.group(1) for key in keys if (match := re.search(r"\{(.+?)\}", key))}
    assert len(tags) == 1


def test_fields_are_short_and_differ() -> None:
    fields = [getattr(names, name) for name in dir(names) if name.startswith("FIELD_")]
    assert sorted(fields) == ["b", "d", "n", "q", "s", "t"]


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
