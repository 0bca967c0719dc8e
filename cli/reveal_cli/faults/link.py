"""A private network path: a veth pair with its far end in a network namespace of its own.

Segmentation offloads are off on both ends: with them one "packet" of the path would be a
super-packet of up to 64 KB and one lost packet in a thousand would hardly ever happen.
"""

from __future__ import annotations

import subprocess
from dataclasses import dataclass

from reveal_cli.faults.ledger import Ledger, Undo

_OFFLOADS = ("tso", "off", "gso", "off", "gro", "off")


class LinkError(RuntimeError):
    """The path cannot be made; the text is what the tool said."""


@dataclass(frozen=True)
class Link:
    """Both ends of the path; addresses of the benchmarking range 198.18.0.0/15 (RFC 2544)."""

    namespace: str
    near: str
    far: str
    subnet: str  # first three bytes; the near end is .1, the far end .2

    @property
    def near_address(self) -> str:
        return f"{self.subnet}.1"

    @property
    def far_address(self) -> str:
        return f"{self.subnet}.2"

    def inside(self, *command: str) -> tuple[str, ...]:
        """The command line that runs ``command`` at the far end."""
        return ("ip", "netns", "exec", self.namespace, *command)

    def create(self, ledger: Ledger) -> None:
        """Make the path; the ledger knows how to remove it.  Raises ``LinkError``."""
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
    """Run a tool of iproute2, nftables or ethtool; raise ``LinkError`` with what it said."""
    done = subprocess.run(command, capture_output=True, text=True, timeout=10, check=False)
    if done.returncode:
        said = (done.stderr or done.stdout).strip().replace("\n", " ")
        raise LinkError(f"{' '.join(command)}: {said or f'exit {done.returncode}'}")


WORKLOAD = Link("reveal-work", "rvw0", "rvw1", "198.18.77")
FAULT = Link("reveal-fault", "rvf0", "rvf1", "198.18.78")
