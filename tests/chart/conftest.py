"""Helm for the tests of the chart; they skip where it was not built."""

from __future__ import annotations

import pytest

from support.helm_chart import Helm, program


@pytest.fixture(scope="session")
def helm(tmp_path_factory: pytest.TempPathFactory) -> Helm:
    """Renders and lints; knows no cluster."""
    return Helm(program(), tmp_path_factory.mktemp("helm"))
