"""One slice on the wire beside the same slice as JSON with names: bytes, and time both ways.

JSON gets the same integers (differences for counters, so that it has fewer digits to write than
it would with readings) and no blanks.
"""

import argparse
import json
import statistics
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmark_report import Row, median_seconds, report
from reveal_contract import wire as revealed
from reveal_contract.channels import ChannelTable
from reveal_contract.wire import Message
from slice_sources import slices


def as_json(message: Message, labels: list[str], slow_labels: list[str]) -> dict[str, Any]:
    missing = message.fast_missing.T.tolist()
    columns = [
        [None if gone else value for value, gone in zip(values, gaps, strict=True)]
        for values, gaps in zip(message.fast.T.tolist(), missing, strict=True)
    ]
    slow = [
        None if gone else value
        for value, gone in zip(message.slow.tolist(), message.slow_missing.tolist(), strict=True)
    ]
    return {
        "node": message.node,
        "boot": message.boot.hex(),
        "sequence": message.sequence,
        "start": message.start_ns,
        **dict(zip(labels, columns, strict=True)),
        **dict(zip(slow_labels, slow, strict=True)),
    }


def rows(pairs: list[tuple[Message, ChannelTable]]) -> list[Row]:
    table = pairs[0][1]
    messages = [message for message, _ in pairs]
    gauges = revealed.gauges(table)
    labels = [[channel.label for channel in part] for part in (table.fast, table.slow)]
    objects = [as_json(message, *labels) for message in messages]
    sent = [revealed.encode(message, gauges) for message in messages]
    texts = [json.dumps(item, separators=(",", ":")).encode() for item in objects]
    timed = {
        "reveal": (
            statistics.mean(map(len, sent)),
            _each(lambda: [revealed.encode(message, gauges) for message in messages], len(sent)),
            _each(lambda: [revealed.decode(data, gauges) for data in sent], len(sent)),
        ),
        "json": (
            statistics.mean(map(len, texts)),
            _each(lambda: [json.dumps(item, separators=(",", ":")) for item in objects], len(sent)),
            _each(lambda: [json.loads(text) for text in texts], len(sent)),
        ),
    }
    ours = timed["reveal"]
    return [
        {
            "format": name,
            "bytes a second": size,
            "encode us": encode * 1e6,
            "decode us": decode * 1e6,
            "times the bytes": size / ours[0],
            "times the time": (encode + decode) / (ours[1] + ours[2]),
        }
        for name, (size, encode, decode) in timed.items()
    ]


def _each(call: Callable[[], object], count: int) -> float:
    return median_seconds(call, calls=3) / count


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("recording", type=Path, nargs="?", help="recording; default: this host now")
    parser.add_argument("--channels", type=int, default=700)
    parser.add_argument("--seconds", type=int, default=48)
    arguments = parser.parse_args()
    pairs = slices(arguments.recording, arguments.seconds, arguments.channels)
    table = pairs[0][1]
    report(
        "wire",
        rows(pairs),
        channels={"fast": len(table.fast), "slow": len(table.slow)},
        slices=len(pairs),
        goal="700 channels: at most 4.8 KB a second and a tenth of JSON",
    )


if __name__ == "__main__":
    main()
