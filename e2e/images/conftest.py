"""The images of this checkout, built once for all tests of the session."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from images import store
from images.building import Built, build_all
from images.container import RUNTIMES, runtime
from images.store import Store


@pytest.fixture(scope="session")
def image_store() -> Store:
    if reason := store.missing_tools():
        pytest.skip(f"no images can be built here: {reason}")
    return Store(store.cache())


@pytest.fixture(scope="session")
def images(image_store: Store) -> dict[str, Built]:
    """By name; what was built already for this very checkout is taken."""
    return {built.image.name: built for built in build_all(image_store)}


@pytest.fixture
def container_runtime(images: dict[str, Built]) -> Iterator[str]:
    if (found := runtime()) is None:
        pytest.skip(f"no {' and no '.join(RUNTIMES)} to run a container in")
    yield found
