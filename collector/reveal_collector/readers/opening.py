"""Opens sources at start, so that one that hangs in its driver delays the others only a little."""

from __future__ import annotations

import logging

from reveal_collector.kernel_interfaces.errors import Unsupported
from reveal_collector.readers.guarded_call import CallThread, GuardedCall
from reveal_collector.readers.source import HUNG_NS, Source, time_of_day

log = logging.getLogger(__name__)

# Once a source hangs, others may hang with it: those of a card whose firmware has stopped.
_LATER_PATIENCE_S = 1.0


class Opening(GuardedCall[None]):
    """The opening of one ``source`` by a thread."""

    def __init__(self, source: Source) -> None:
        super().__init__(source.open)
        self.source = source
        # sources of one driver hang together
        self.driver: str = getattr(source, "driver", source.name)

    def refusal(self) -> Exception | None:
        """Return why the source is not open, or None where it is."""
        if self.ended.is_set():
            return self.error
        return Unsupported(
            f"its driver has not answered since {time_of_day(self.began_ns)}",
            "see dmesg for the reason",
        )


class SourceOpener:
    """Opens sources one after another in a thread, which a source that hangs keeps.

    The first source that hangs is waited for until the timeout, later ones for a second at most:
    together they must not delay the start.  Sources of a driver that hangs follow in its thread,
    so that they open when it answers.
    """

    def __init__(self, timeout_s: float = HUNG_NS / 1e9) -> None:
        self._patience_s = timeout_s
        self._thread: CallThread | None = None
        self._hung: dict[str, CallThread] = {}

    def open(self, source: Source) -> Opening:
        """Open a source; it has not ``ended`` where its driver hangs."""
        opening = Opening(source)
        if (hung := self._hung.get(opening.driver)) is not None:
            hung.put(opening)
            return opening
        self._thread = self._thread or CallThread("reveal-open")
        self._thread.put(opening)
        if not opening.ended.wait(self._patience_s):
            log.warning("source %s does not answer: it is opened in the background", source.name)
            self._patience_s = min(self._patience_s, _LATER_PATIENCE_S)
            self._hung[opening.driver], self._thread = self._thread, None
        return opening

    def close(self) -> None:
        """End the threads after their present sources."""
        for thread in (self._thread, *self._hung.values()):
            if thread is not None:
                thread.finish()
        self._thread, self._hung = None, {}
