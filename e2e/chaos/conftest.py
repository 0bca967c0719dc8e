"""Each case ends with all that it broke at work again."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from support.clusterchaos import Pods, recovered
from support.clusterwatch import Watched


@pytest.fixture
def pods(three_nodes: Watched) -> Iterator[Pods]:
    recovered(three_nodes)
    yield Pods(three_nodes)
    recovered(three_nodes)
