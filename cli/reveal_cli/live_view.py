"""What live views of a node show: its subsystems, lines on findings, the state of its collector."""

from __future__ import annotations

import contextlib
import json
from typing import TYPE_CHECKING, Any

from reveal_cli.findings_table import claim_text, local_time
from reveal_contract import catalogue, names
from reveal_contract.channels import ChannelTable
from reveal_contract.finding import Finding
from reveal_contract.metric import Subsystem

if TYPE_CHECKING:
    import redis


def subsystems_of(table: ChannelTable) -> frozenset[Subsystem]:
    """Return the subsystems for which a node has channels."""
    found = set()
    for metric in {channel.metric for channel in (*table.fast, *table.slow)}:
        with contextlib.suppress(catalogue.UnknownMetricError):  # of a newer collector
            found.add(catalogue.find(metric).subsystem)
    return frozenset(found)


def event_text(finding: Finding) -> str:
    """Return a finding in a line."""
    time_ = local_time(finding.first_observed_ns)
    return f"{time_} {finding.subsystem.value} {finding.severity.value}: {claim_text(finding)}"


def collector_state(client: redis.Redis, profile: str, node: str) -> dict[str, Any]:
    """Return the last state that a collector published; empty where Redis cannot be read."""
    with contextlib.suppress(Exception):  # for the summary only: never a reason to fail
        published = client.hget(names.node_key(profile, node), names.STATUS)
        state = json.loads(published) if isinstance(published, bytes) else {}
        return state if isinstance(state, dict) else {}
    return {}
