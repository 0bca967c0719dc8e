"""Fixtures of the tests that read table files."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.table_files import Write


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def file(content: str | bytes, name: str = "t.csv") -> Path:
        path = tmp_path / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    return file
