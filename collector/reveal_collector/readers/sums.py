"""Columns that add up several inputs: which inputs they add, and when two readings compare.

Inputs of the same channel are parts of the same thing (the dies of a package, two timer lines of a
CPU), so all of them are added.  What must stay apart needs an instance of its own.

A sum is a counter only while it adds the same inputs: an input that comes back (a CPU that is
online again) would add its history in one step.  ``identified`` marks the channel with its members.
Encoder and sampler never subtract readings of a channel with other members.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import replace
from typing import TypeVar

from reveal_collector.readers.plan import Columns, Vector
from reveal_contract.channels import Channel
from reveal_contract.metric import Kind

T = TypeVar("T")


def grouped(inputs: Iterable[tuple[Channel, T]]) -> dict[Channel, tuple[T, ...]]:
    """Return the inputs that each channel adds up, in their order."""
    found: dict[Channel, list[T]] = {}
    for channel, each in inputs:
        found.setdefault(channel, []).append(each)
    return {channel: tuple(members) for channel, members in found.items()}


def identified(channel: Channel, members: Iterable[Hashable]) -> Channel:
    """Return the channel of a sum of these members; only counters depend on what they add up."""
    if channel.kind is not Kind.COUNTER:
        return channel
    return replace(channel, members=hash(tuple(members)))


def identified_sums(
    channels: Sequence[Channel], columns: Columns, inputs: Sequence[Hashable]
) -> tuple[Channel, ...]:
    """Return the channels of columns, with the members of those that are sums.

    ``inputs`` are the identities of the values.  A column of the value with its own identity is
    no sum.
    """
    if columns.sums is None:
        return tuple(channels)
    summed = [
        channel
        if len(group) == 1 and inputs[group[0]] == channel.identity
        else identified(channel, [inputs[index] for index in group])
        for channel, group in zip(channels, columns.sums, strict=False)
    ]
    return (*summed, *channels[len(summed) :])


def expanded(columns: Columns, groups: Sequence[tuple[int, ...]]) -> Columns:
    """Return columns of groups of values instead of columns of values."""
    if all(len(group) == 1 for group in groups):
        return columns

    def values(indices: Iterable[int]) -> tuple[int, ...]:
        return tuple(value for index in indices for value in groups[index])

    sums = tuple(groups) if columns.sums is None else tuple(map(values, columns.sums))
    vectors = tuple(
        Vector(tuple(map(values, vector.elements)), vector.labels) for vector in columns.vectors
    )
    weights = tuple(
        weight
        for weight, group in zip(columns.weights, groups, strict=bool(columns.weights))
        for _ in group
    )
    return Columns(sums, vectors, weights)


def total(parts: Sequence[int | None]) -> int | None:
    """Return the sum of all parts; None if one of them is missing."""
    try:
        return sum(parts)  # type: ignore[arg-type]  # None is rare: handle it as an exception
    except TypeError:
        return None
