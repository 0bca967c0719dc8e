"""Fuzzes the parsers in Python with atheris: any bytes where a kernel file was.

Values or one clear error, never another exception; and the values are those a reader that
never saw another text gives to the same names.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from contextlib import suppress
from pathlib import Path

import atheris

with atheris.instrument_imports(include=["reveal_collector"]):
    from reveal_collector.kernel_interfaces.errors import LayoutChanged, Unsupported
    from reveal_collector.readers.source import Roots, Source
    from reveal_collector.registry import FACTORIES

TREE = Path(__file__).parents[1] / "fixtures/hosts/vm-2cpu"
FILES = {
    "stat": "proc/stat", "softirqs": "proc/softirqs", "interrupts": "proc/interrupts",
    "loadavg": "proc/loadavg", "meminfo": "proc/meminfo", "diskstats": "proc/diskstats",
    "vmstat": "proc/vmstat", "buddyinfo": "proc/buddyinfo", "psi": "proc/pressure/io",
    "netdev": "proc/1/net/dev", "netstat": "proc/1/net/netstat", "snmp6": "proc/1/net/snmp6",
    "sockstat": "proc/1/net/sockstat", "softnet": "proc/1/net/softnet_stat",
    "cpuclock": "cgroup/cpuacct/cpuacct.usage_percpu",
}  # fmt: skip
NAMES = tuple(FILES)


class Fuzz:
    """One tree; each input stands in the place of one of its files for a moment."""

    def __init__(self, tree: Path) -> None:
        self._tree = tree
        self._roots = Roots(tree / "proc", tree / "sys", tree / "cgroup")
        self._texts = {name: (tree / file).read_bytes() for name, file in FILES.items()}

    def __call__(self, data: bytes) -> None:
        """First byte: which file; second: how much of the true text stays before the input."""
        if len(data) < 3:
            return
        name = NAMES[data[0] % len(NAMES)]
        true = self._texts[name]
        self._try(name, true[: data[1] * len(true) // 255] + data[2:])

    def _try(self, name: str, text: bytes) -> None:
        path = self._tree / FILES[name]
        path.write_bytes(self._texts[name])
        kept, new = self._fresh(name), self._fresh(name)
        kept.open()
        path.write_bytes(text)
        observed = _values(kept)
        with suppress(Unsupported):
            new.open()
            known = _values(new)
            for label in observed.keys() & known.keys():
                if observed[label] != known[label]:
                    raise AssertionError(
                        f"{name}: {label} is {observed[label]}, not {known[label]}"
                    )
        kept.close()
        new.close()

    def _fresh(self, name: str) -> Source:
        result = (source for factory in FACTORIES for source in factory(self._roots))
        return next(source for source in result if source.name == name)


def _values(source: Source) -> dict[str, int | None]:
    for _ in range(2):
        try:
            read = source.read()
        except LayoutChanged:
            continue
        except OSError:
            return {}
        return {each.label: value for each, value in zip(source.channels, read, strict=True)}
    raise AssertionError(f"{source.name}: another layout each time")


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(shutil.copytree(TREE, Path(folder) / "host"))
        atheris.Setup(sys.argv, Fuzz(tree))
        atheris.Fuzz()


if __name__ == "__main__":
    main()
