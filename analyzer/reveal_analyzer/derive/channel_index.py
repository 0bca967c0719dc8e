"""Channels of a table by metric: one pass for all parts of the analysis that look for some."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache

from reveal_contract.channels import Channel

_TABLES = 64  # nodes in turn: each part of the analysis of one asks for the same


class _Channels:
    """Channels of one table, known by identity: to compare those of two takes long."""

    __slots__ = ("members",)

    def __init__(self, members: Sequence[Channel]) -> None:
        self.members = members

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Channels) and self.members is other.members

    def __hash__(self) -> int:
        return id(self.members)


def indices_by_metric(channels: Sequence[Channel]) -> Mapping[str, Sequence[int]]:
    """Return the indices of the channels of each metric, ascending."""
    return _indices(_Channels(channels))


def indices_of(channels: Sequence[Channel], metric: str) -> Sequence[int]:
    """Return the indices of the channels of one metric, ascending."""
    return indices_by_metric(channels).get(metric, ())


@lru_cache(maxsize=_TABLES)
def _indices(channels: _Channels) -> Mapping[str, Sequence[int]]:
    found: dict[str, list[int]] = {}
    for index, channel in enumerate(channels.members):
        found.setdefault(channel.metric, []).append(index)
    return found
