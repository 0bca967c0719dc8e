"""Standard streams whose write errors do not end a command in the middle.

A reader that closes a pipe, a full disk or a closed terminal must not keep a command from writing
its files and from choosing its exit code.
"""

from __future__ import annotations

import contextlib
import errno
import io
import os
import sys
from collections.abc import Iterator


class GuardedOutput(io.TextIOWrapper):
    """A text stream that drops everything after its first write error; ``error`` is that error.

    A closed pipe is no error: its reader has seen enough.
    """

    error: OSError | None = None
    _dropping = False

    def write(self, text: str, /) -> int:
        """Write a text, or drop it after an error."""
        if not self._dropping:
            with self._noting_errors():
                super().write(text)
        return len(text)

    def flush(self) -> None:
        """Pass on what is buffered."""
        if not self._dropping:
            with self._noting_errors():
                super().flush()

    @contextlib.contextmanager
    def _noting_errors(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            self._dropping = True
            if error.errno != errno.EPIPE:
                self.error = error
            self._discard_buffer()

    def _discard_buffer(self) -> None:
        """Point the descriptor to /dev/null, where the rest of the buffer can be written."""
        null = os.open(os.devnull, os.O_WRONLY)
        with contextlib.suppress(OSError):  # a stream without a descriptor
            os.dup2(null, self.fileno())
        os.close(null)


@contextlib.contextmanager
def guarded_streams() -> Iterator[GuardedOutput]:
    """Guard stdout and stderr, and return stdout.

    Errors of stderr are dropped: there is nowhere to report them.
    """
    previous = sys.stdout, sys.stderr
    guarded = [_guard(stream) for stream in previous]
    sys.stdout, sys.stderr = guarded
    try:
        yield guarded[0]
    finally:
        sys.stdout, sys.stderr = previous
        for stream in guarded:
            stream.flush()
            stream.detach()


def _guard(stream: object) -> GuardedOutput:
    """Return a guarded stream with the same buffer; one that drops all for a closed descriptor."""
    if not isinstance(stream, io.TextIOWrapper):  # None where the descriptor is closed
        return GuardedOutput(io.BytesIO(), "utf-8")
    stream.flush()
    return GuardedOutput(
        stream.buffer,
        stream.encoding,
        stream.errors,
        line_buffering=stream.line_buffering,
        write_through=stream.write_through,
    )
