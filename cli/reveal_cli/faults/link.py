"""A private network path: a veth pair with its far end in a network namespace of its own.

Segmentation offloads are off on both ends.  Otherwise one "packet" of the path would be a
super-packet of up to 64 KB, and the loss of one packet in a thousand would hardly ever occur.
"""

from __future__ import annotations

import subprocess
from dataclasses import dataclass

from reveal_cli.faults.ledger import Ledger, Undo

_OFFLOADS = ("tso", "off", "gso", "off", "gro", "off")


class LinkError(RuntimeError):
    """The path cannot be created; the text is the tool's error."""


@dataclass(frozen=True)
class VethLink:
    """Both ends of the path; addresses of the benchmarking range 198.18.0.0/15 (RFC 2544)."""

    namespace: str
    near: str
    far: str
    subnet: str  # first three bytes; the near end is .1, the far end .2

    @property
    def near_address(self) -> str:
        """The address of the host's end."""
        return f"{self.subnet}.1"

    @property
    def far_address(self) -> str:
        """The address of the end in the namespace."""
        return f"{self.subnet}.2"

    def inside(self, *command: str) -> tuple[str, ...]:
        """Return the command line that runs ``command`` at the far end."""
        return ("ip", "netns", "exec", self.namespace, *command)

    def create(self, ledger: Ledger) -> None:
        """Create the path; the ledger removes it.  Raises ``LinkError``."""
        ledger.add(Undo("command", ("ip", "netns", "del", self.namespace)))
        run("ip", "netns", "add", self.namespace)
        ledger.add(Undo("command", ("ip", "link", "del", self.near)))
        run("ip", "link", "add", self.near, "type", "veth", "peer", "name", self.far)
        run("ip", "link", "set", self.far, "netns", self.namespace)
        run("ip", "addr", "add", f"{self.near_address}/30", "dev", self.near)
        run("ip", "link", "set", self.near, "up")
        run(*self.inside("ip", "addr", "add", f"{self.far_address}/30", "dev", self.far))
        run(*self.inside("ip", "link", "set", self.far, "up"))
        run(*self.inside("ip", "link", "set", "lo", "up"))
        run("ethtool", "-K", self.near, *_OFFLOADS)
        run(*self.inside("ethtool", "-K", self.far, *_OFFLOADS))


def run(*command: str) -> None:
    """Run a tool of iproute2, nftables or ethtool; raises ``LinkError`` with its error."""
    result = subprocess.run(command, capture_output=True, text=True, timeout=10, check=False)
    if result.returncode:
        message = (result.stderr or result.stdout).strip().replace("\n", " ")
        raise LinkError(f"{' '.join(command)}: {message or f'exit {result.returncode}'}")


WORKLOAD = VethLink("reveal-work", "rvw0", "rvw1", "198.18.77")
FAULT = VethLink("reveal-fault", "rvf0", "rvf1", "198.18.78")
