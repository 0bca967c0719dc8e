"""A real API server that knows our objects."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from support.api_server import Kube
from support.crd_schema import DEFINITIONS


@pytest.fixture(scope="module")
def api(kube: Kube) -> Kube:
    kube.install(*DEFINITIONS)
    return kube


@pytest.fixture
def to_delete(api: Kube) -> Iterator[list[dict[str, Any]]]:
    """Yield a list; delete every object that a test adds to it."""
    objects: list[dict[str, Any]] = []
    yield objects
    for item in objects:
        api.delete(item)
