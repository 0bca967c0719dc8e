"""Each case ends with all that it broke at work again."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from support.cluster_outages import Pods, recovered
from support.cluster_release import Release


@pytest.fixture
def pods(three_nodes: Release) -> Iterator[Pods]:
    recovered(three_nodes)
    yield Pods(three_nodes)
    recovered(three_nodes)
