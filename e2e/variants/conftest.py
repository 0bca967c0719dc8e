"""Releases that are not the default one; each puts the default back when it is done."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from support.cluster_release import Release
from support.hardened_release import Hardened, hardened_release


@pytest.fixture(scope="module")
def capabilities(three_nodes: Release) -> Iterator[Release]:
    """Collectors with single capabilities instead of a privileged container."""
    three_nodes.change(collector={"privilege": "Capabilities"})
    yield three_nodes
    three_nodes.change(collector=None)


@pytest.fixture(scope="module")
def hardened(three_nodes: Release, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hardened]:
    """Everything that can be closed is, in one release."""
    with hardened_release(three_nodes, tmp_path_factory.mktemp("hardened")) as release:
        yield release
