"""Bytes a second that the ledger adds to the slices of a node with many busy subjects."""

from __future__ import annotations

import os
import random
import statistics
import time
from array import array

from benchmark_report import Row
from ledgerbench import live
from reveal_collector.readers.raw_slice import MISSING, RawSlice, SliceOrigin
from reveal_collector.shipping.numpy_encoder import NumpyEncoder
from reveal_contract.channels import ChannelTable

_WORK = (
    "import random, time\nwhile True:\n e = time.process_time() + random.uniform(.001, .02)\n"
    " while time.process_time() < e: pass\n time.sleep(random.uniform(.01, {pause}))"
)


def measure(subjects: int, seconds: int) -> Row:
    """Return the bytes of slices that hold the ledger alone, and the CPU time of its reads."""
    source, tree = live.ledger_source()
    folders = [live.Subject(100 + number, tree) for number in range(subjects)]
    rng = random.Random(1)
    encoder = NumpyEncoder(SliceOrigin("node", os.urandom(16), 100_000))
    table, sizes, cpu_ms, tables = ChannelTable((), ()), [], [], 0
    try:
        for subject in folders:
            for _ in range(2):
                subject.start(_WORK.format(pause=rng.uniform(0.4, 3.0)))
        source.open()
        for sequence in range(seconds + 10):
            time.sleep(1.0)
            began = time.thread_time()
            values = live.read(source)
            cpu_ms.append((time.thread_time() - began) * 1e3)
            if source.channels != table.slow:
                table, tables = ChannelTable((), source.channels), tables + 1
            slow = [MISSING if value is None else value for value in values]
            raw = RawSlice(sequence, time.time_ns(), table, array("q"), array("q", slow), (0,) * 10)
            sizes.append(len(encoder.encode(raw)))
    finally:
        source.close()
        for subject in folders:
            subject.remove()
    empty = RawSlice(0, time.time_ns(), ChannelTable((), ()), array("q"), array("q"), (0,) * 10)
    frame = len(NumpyEncoder(SliceOrigin("node", os.urandom(16), 100_000)).encode(empty))
    return {
        "subjects": subjects,
        "channels": len(table.slow),
        "tables": tables,
        "bytes_a_second": round(statistics.fmean(sizes[10:]) - frame),
        "read_cpu_ms": round(statistics.median(cpu_ms[10:]), 2),
    }
