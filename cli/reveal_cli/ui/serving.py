"""Runs the server of ``reveal ui`` until the user interrupts."""

from __future__ import annotations

import threading
import time

from reveal_cli.errors import USAGE, CliError
from reveal_cli.interrupt import Interrupt
from reveal_cli.terminal import show
from reveal_cli.ui.server import UiServer
from reveal_cli.ui.source import Source

_POLL_S = 0.2


def serve(source: Source, port: int, interrupt: Interrupt) -> None:
    """Serve a source and print the address; raises ``CliError`` for a port that cannot be used."""
    if not 0 <= port <= 65_535:
        raise CliError(f"--port {port} must be between 0 (any free one) and 65535", USAGE)
    try:
        server = UiServer(source, port)
    except OSError as error:
        raise CliError(f"--port {port}: {error.strerror}") from None
    with server:
        threading.Thread(target=server.serve_forever, name="reveal-ui", daemon=True).start()
        show(f"Open {server.url}", "Ctrl-C ends it.")
        while not interrupt.requested:
            time.sleep(_POLL_S)
        server.shutdown()
