"""Bounds of the raw readings of a channel, from its row in the catalogue."""

from __future__ import annotations

from functools import cache

from reveal_contract.bounds import UNBOUNDED, RawBounds
from reveal_contract.catalogue import UnknownMetricError, find
from reveal_contract.channels import Channel
from reveal_contract.metric import Kind


def raw_bounds(channel: Channel) -> RawBounds:
    """Return the readings that this channel can have; a counter can have any."""
    if channel.kind is Kind.COUNTER:
        return UNBOUNDED.raw(1.0)
    return _level(channel.metric, channel.scale)


@cache
def _level(metric: str, scale: float) -> RawBounds:
    try:
        return find(metric).limits.raw(scale)
    except UnknownMetricError:
        return UNBOUNDED.raw(scale)
