"""A client that sends its request byte by byte, each in time for itself."""

from __future__ import annotations

import socket

_PAUSE_S = 0.02


def closes_after_a_byte(connection: socket.socket) -> bool:
    """Send another byte of a request; return whether the server closes the connection."""
    connection.settimeout(_PAUSE_S)
    try:
        connection.send(b"G")
        return connection.recv(1) == b""
    except TimeoutError:
        return False
    except OSError:  # the server did not read all bytes
        return True
