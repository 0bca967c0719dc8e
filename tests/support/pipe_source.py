"""A source that hangs for real: it reads from a pipe that may be empty."""

from __future__ import annotations

import os
import threading
from collections.abc import Sequence

from reveal_contract.channels import Channel
from reveal_contract.metric import Kind, Lane


class Pipe:
    """A source whose calls read a byte from a pipe, and hang while the pipe is empty."""

    def __init__(self, name: str, lane: Lane) -> None:
        self.name, self.lane = name, lane
        self.channels: tuple[Channel, ...] = (Channel(f"{name}.x", "", Kind.GAUGE, 1.0, lane),)
        self.reader, self.writer = os.pipe()
        self.reading = threading.Event()
        self.opened = 0

    def put(self, *values: int) -> None:
        os.write(self.writer, bytes(values))

    def open(self) -> None:
        self.opened += 1

    def read(self) -> Sequence[int | None]:
        self.reading.set()
        return [os.read(self.reader, 1)[0]]

    def close(self) -> None: ...
