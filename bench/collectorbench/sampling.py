"""The sampler alone, for ``collector.py``: reads, makes slices, encodes them, drops them.

    python sampling.py python|native all|lanes SECONDS

``all`` reads every file at the full rate; ``lanes`` reads those of the slow lane once a second.
The sources are those behind the files the floor reads.
"""

import sys
import time

from reveal_collector.kernel_interfaces.errors import Unsupported
from reveal_collector.readers.raw_slice import RawSlice, SliceOrigin
from reveal_collector.readers.source import Roots, Source
from reveal_collector.registry import FACTORIES
from reveal_collector.sampling.native_sampler import NativeSampler
from reveal_collector.sampling.sampler import Sampler
from reveal_collector.shipping.native_encoder import encoder_of
from reveal_contract.metric import Lane

SOURCES = {
    "stat", "cpuclock", "softirqs", "interrupts", "loadavg", "meminfo", "vmstat", "numa", "psi",
    "diskstats", "netdev", "netstat", "snmp", "snmp6", "sockstat", "softnet",
}  # fmt: skip
PERIOD_NS = 100_000_000


def opened(every_tick: bool) -> list[Source]:
    found = []
    for source in (created for factory in FACTORIES for created in factory(Roots())):
        if source.name not in SOURCES:
            continue
        try:
            source.open()
        except Unsupported:
            continue
        if every_tick:
            source.lane = Lane.FAST
        found.append(source)
    return found


def main() -> None:
    how, lanes, seconds = sys.argv[1], sys.argv[2], float(sys.argv[3])
    encoder = encoder_of(SliceOrigin("bench", bytes(16), PERIOD_NS // 1000))

    def take(raw: RawSlice) -> None:
        encoder.encode(raw)

    kind = NativeSampler if how == "native" else Sampler
    sampler = kind("bench", opened(lanes == "all"), take, PERIOD_NS)
    sampler.start()
    time.sleep(seconds)
    sampler.stop()
    print(sampler.counts, file=sys.stderr)


if __name__ == "__main__":
    main()
