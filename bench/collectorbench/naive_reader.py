"""The loop many write: open, read, split, float, dict, ten times a second, over given files."""

import sys
import time
from pathlib import Path


def sample(paths: list[str]) -> dict[str, float]:
    values: dict[str, float] = {}
    for path in paths:
        for row, line in enumerate(Path(path).read_text().splitlines()):
            for column, token in enumerate(line.replace(":", " ").split()):
                try:
                    values[f"{path}.{row}.{column}"] = float(token)
                except ValueError:
                    continue
    return values


def main() -> None:
    rate, seconds, paths = float(sys.argv[1]), float(sys.argv[2]), sys.argv[3:]
    start = time.monotonic()
    for tick in range(1, int(rate * seconds) + 1):
        time.sleep(max(0.0, start + tick / rate - time.monotonic()))
        values = sample(paths)
    print(f"{len(values)} numbers a pass")


if __name__ == "__main__":
    main()
