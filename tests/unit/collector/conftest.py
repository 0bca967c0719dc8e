"""Files that a test of the collector leaves open are closed after it.

A process that runs a thousand such tests would reach its limit of open files otherwise.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from reveal_collector.readers.textfile import OpenFile


@pytest.fixture(autouse=True)
def _files_closed(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    opened: list[OpenFile] = []
    open_file = OpenFile.open

    def noted(file: OpenFile) -> None:
        open_file(file)
        opened.append(file)

    monkeypatch.setattr(OpenFile, "open", noted)
    yield
    for file in opened:
        file.close()
