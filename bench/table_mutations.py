"""Read many mutated tables: each is read or refused with a sentence, and no column is lost unsaid.

Usage: ``python bench/table_mutations.py [--tables 100000] [--seed 0]``.
Exit code 1 if a table raises another exception, or loses a column without a word.
"""

from __future__ import annotations

import argparse
import collections
import sys
import tempfile
import traceback
import warnings
from pathlib import Path
from random import Random

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from reveal_analyzer.tables.ingest.open import TableFileError
from reveal_analyzer.tables.ingest.reader import read
from support.table_mutations import mutated, originals, unaccounted


def main() -> int:
    """Read the tables; print how many were read, refused, or wrong."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tables", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    random, sources = Random(arguments.seed), originals()
    counts: collections.Counter[str] = collections.Counter()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "t.csv"
        for _ in range(arguments.tables):
            path.write_bytes(mutated(random.choice(sources), random))
            counts[_result(path)] += 1
    for result, count in counts.most_common():
        print(f"{count:7d} {result}")
    return int(set(counts) - {"read", "refused"} != set())


def _result(path: Path) -> str:
    try:
        lost = unaccounted(read(path))
    except TableFileError:
        return "refused"
    except Exception as error:
        frame = traceback.extract_tb(error.__traceback__)[-1]
        _keep(path)
        return f"{type(error).__name__} in {frame.name}: {str(error)[:80]}"
    if lost:
        _keep(path)
        return f"{len(lost)} columns lost unsaid"
    return "read"


def _keep(path: Path) -> None:
    """Keep a table that was read wrongly, for a test of its own."""
    kept = Path(tempfile.gettempdir()) / f"table-{hash(path.read_bytes()) & 0xFFFFFF:06x}.csv"
    kept.write_bytes(path.read_bytes())
    print(f"kept {kept}", file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main())
