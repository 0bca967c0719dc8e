"""Nodes that are watched by their streams while somebody looks at their pages."""

from __future__ import annotations

import logging
import math
import threading
import time
from collections.abc import Callable
from contextlib import closing

from reveal_cli.errors import CliError
from reveal_cli.interrupt import Interrupt
from reveal_cli.node_stream import NodeStream
from reveal_cli.progress import ProgressView
from reveal_cli.stream_session import StreamSession

log = logging.getLogger(__name__)

MOST_WATCHED = 8
IDLE_S = 30.0  # after the last look
_FIRST_S = 20.0  # until the two minutes of the stream are judged


class LiveWatches:
    """A thread for each node that is looked at; ``open_stream`` may raise ``CliError``."""

    def __init__(
        self,
        open_stream: Callable[[str], NodeStream],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._open, self._clock = open_stream, clock
        self._lock = threading.Lock()
        self._watches: dict[str, _Watch] = {}

    def view(self, node: str) -> ProgressView:
        """Return the state of a node now; raises ``CliError`` if it cannot be watched."""
        return self._watch_of(node).look()

    def close(self) -> None:
        """End all."""
        with self._lock:
            for watch in self._watches.values():
                watch.end()

    def _watch_of(self, node: str) -> _Watch:
        with self._lock:
            for name in [name for name, each in self._watches.items() if each.is_over]:
                del self._watches[name]
            if node not in self._watches:
                if len(self._watches) >= MOST_WATCHED:
                    raise CliError(f"{MOST_WATCHED} nodes are watched already: close a page")
                watch = _Watch(node, self._open, self._clock)
                self._watches[node] = watch
                watch.start()
            return self._watches[node]


class _Watch:
    """One node; it is the progress of its own session."""

    def __init__(
        self, node: str, open_stream: Callable[[str], NodeStream], clock: Callable[[], float]
    ) -> None:
        self._node, self._open, self._clock = node, open_stream, clock
        self._interrupt = Interrupt()
        self._looked_s = clock()
        self._view: ProgressView | None = None
        self._problem = ""
        self._changed = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"watch {node}", daemon=True)

    @property
    def is_over(self) -> bool:
        return self._changed.is_set() and not self._thread.is_alive()

    def start(self) -> None:
        self._thread.start()

    def end(self) -> None:
        self._interrupt.request()

    def look(self) -> ProgressView:
        self._looked_s = self._clock()
        self._changed.wait(_FIRST_S)
        if self._problem:
            raise CliError(self._problem)
        if self._view is None:
            raise CliError(f"node {self._node} has not answered in {_FIRST_S:.0f} s")
        return self._view

    def update(self, view: ProgressView) -> None:
        self._view = view
        self._changed.set()
        if self._clock() - self._looked_s > IDLE_S:
            self.end()

    def warn(self, line: str) -> None:
        """Do nothing: the page has what the view says."""

    def event(self, line: str) -> None:
        """Do nothing: the page lists the findings."""

    def stop(self) -> None:
        """Do nothing."""

    def _run(self) -> None:
        try:
            with closing(self._open(self._node)) as stream:
                StreamSession(stream, math.inf, self, self._interrupt).run()
        except CliError as error:
            self._problem = str(error)
        except Exception as error:
            log.exception("node %s cannot be watched", self._node)
            self._problem = f"{type(error).__name__}: {error}"
        finally:
            self._changed.set()
