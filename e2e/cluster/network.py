"""Addresses of a control plane and its nodes, and the bridge that nodes are plugged into."""

from __future__ import annotations

import re
import subprocess
from dataclasses import dataclass
from typing import Any

_FIRST_NODE = 10
NUMBERS = range(1, 10)
_NAME = re.compile(r"(?P<kind>node|vm)(?P<number>[1-9])")


@dataclass(frozen=True)
class Network:
    """The first two or three numbers of every address, and the bridge; none without nodes.

    A node is ``NODES.(10+number)``, its pods ``PODS.number.0/24``, services ``SERVICES.0/24``.
    """

    api: str
    services: str
    nodes: str = ""
    pods: str = ""
    bridge: str = ""

    @property
    def has_nodes(self) -> bool:
        return bool(self.bridge)

    @property
    def dns(self) -> str:
        return self.service(10)

    def service(self, number: int) -> str:
        return f"{self.services}.{number}"

    def node(self, number: int) -> str:
        return f"{self.nodes}.{_FIRST_NODE + number}"

    def pods_of(self, number: int) -> str:
        return f"{self.pods}.{number}.0/24"

    def plug(self, number: int) -> str:
        """The machine's end of a node's cable."""
        return f"{self.bridge}n{number}"


LOOPBACK = Network("127.0.0.1", "10.0.0")
BRIDGED = Network("10.89.0.1", "10.97.0", nodes="10.89.0", pods="10.245", bridge="reveal0")


def number(name: str) -> int:
    """Of a node: ``node1`` is the first; virtual machines, ``vm1``, are counted from the last."""
    match = _NAME.fullmatch(name)
    if match is None:
        raise ValueError(f"no node can be called {name}")
    counted = int(match["number"])
    return counted if match["kind"] == "node" else NUMBERS[-counted]


def build(network: Network) -> None:
    """The bridge, which carries the API server's address; one that is there stays."""
    if ip("link", "show", network.bridge, check=False):
        ip("link", "add", network.bridge, "type", "bridge")
        ip("address", "add", f"{network.api}/24", "dev", network.bridge)
    ip("link", "set", network.bridge, "up")


def remove(network: Network) -> None:
    """Cables and bridge; routes go with them."""
    for number in NUMBERS:
        unplug(network, number)
    ip("link", "delete", network.bridge, check=False)


def plug(network: Network, number: int, pid: int) -> None:
    """A cable from the bridge into the network namespace of ``pid``, where it is ``eth0``."""
    unplug(network, number)
    end = network.plug(number)
    ip("link", "add", end, "type", "veth", "peer", "name", "eth0", "netns", pid)
    ip("link", "set", end, "master", network.bridge, "up")
    ip("route", "replace", network.pods_of(number), "via", network.node(number))


def plug_tap(network: Network, number: int) -> None:
    """A cable from the bridge to a virtual machine, which holds its other end."""
    unplug(network, number)
    end = network.plug(number)
    ip("tuntap", "add", end, "mode", "tap")
    ip("link", "set", end, "master", network.bridge, "up")
    ip("route", "replace", network.pods_of(number), "via", network.node(number))


def unplug(network: Network, number: int) -> None:
    ip("link", "delete", network.plug(number), check=False)
    ip("route", "delete", network.pods_of(number), check=False)


def disconnect(network: Network, number: int) -> None:
    """A partition: the node runs on, and nobody reaches it."""
    ip("link", "set", network.plug(number), "down")


def join(network: Network, number: int) -> None:
    ip("link", "set", network.plug(number), "up")


def configure(network: Network, number: int) -> None:
    """Inside of a node: its address, the way out and to the pods of other nodes."""
    ip("link", "set", "lo", "up")
    ip("address", "replace", f"{network.node(number)}/24", "dev", "eth0")
    ip("link", "set", "eth0", "up")
    ip("route", "replace", "default", "via", network.api)
    for other in NUMBERS:
        if other != number:
            ip("route", "replace", network.pods_of(other), "via", network.node(other))


def ip(*words: Any, check: bool = True) -> int:
    """Run ip(8); its exit status."""
    command = ["ip", *map(str, words)]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    if check and done.returncode:
        raise OSError(f"{' '.join(command)}: {done.stderr.strip()}")
    return done.returncode
