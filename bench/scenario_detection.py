"""The scenario bench: hours of telemetry with known faults, played in minutes.

    bench/scenarios                                  all timelines
    bench/scenarios --only ROW [ROW/NAME ...]        some of them
    bench/scenarios --against DIR                    the code of another checkout in the same run
    bench/scenarios --collect DIR [DIR ...]          more clips, from recordings of bench/faults
    bench/scenarios --list

Each timeline is spliced from clips of real telemetry and goes through a real Redis to a real
analyzer process at full speed; findings come back as JSON rows.  A timeline that kills, replaces
or scales the analyzer has analyzers of its own.  --progress FILE makes a run resumable.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import redis

sys.path.insert(0, str(Path(__file__).parent))

from faultbench.sessions import NothingToJudgeError
from host_cleanup import interruptible, log
from reveal_cli.broker import Broker, BrokerError
from scenariobench import collect, summary
from scenariobench.analyzers import AnalyzerError, Checkout
from scenariobench.clip_file import ClipError
from scenariobench.judge import judge
from scenariobench.library import Library
from scenariobench.player import Player
from scenariobench.rows import Planned, planned
from scenariobench.stream import StreamError
from scenariobench.summary import Progress, Result

CLIPS = Path(__file__).parent / "scenariobench" / "clips"
RESULTS = Path(__file__).parent / "results" / "scenarios.json"
ERRORS = (ClipError, AnalyzerError, BrokerError, NothingToJudgeError, OSError, redis.RedisError)


def main(argv: Sequence[str] | None = None) -> int:
    """Exit code 0 done, 1 error, 2 usage, 130 interrupted."""
    asked = _parser().parse_args(argv)
    interruptible()
    try:
        if asked.collect:
            return _collect(asked)
        chosen = _chosen(planned(Library(*asked.clips)), asked.only)
        if asked.list:
            print(*(each.label for each in chosen), sep="\n")
            return 0
        return _play(asked, chosen)
    except ERRORS as error:
        print(f"scenarios: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("scenarios: interrupted", file=sys.stderr)
        return 130


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="bench/scenarios",
        description=__doc__,
        formatter_class=argparse.RawTextHelpFormatter,
    )
    parser.add_argument("--list", action="store_true", help="names of the timelines")
    parser.add_argument("--only", nargs="+", metavar="ROW[/NAME]", help="these timelines")
    parser.add_argument("--against", type=Path, metavar="DIR", help="another checkout, in one run")
    parser.add_argument("--clips", type=Path, nargs="+", metavar="DIR", default=[CLIPS])
    parser.add_argument(
        "--collect", type=Path, nargs="+", metavar="DIR", help="make clips of these"
    )
    parser.add_argument("--into", type=Path, metavar="DIR", default=CLIPS, help="for --collect")
    parser.add_argument("--progress", type=Path, metavar="FILE", help="results so far; go on there")
    parser.add_argument("--out", type=Path, default=RESULTS, metavar="FILE")
    return parser


def _collect(asked: argparse.Namespace) -> int:
    for source in asked.collect:
        for path in collect.collect(source, asked.into):
            log(f"{path.name}: {path.stat().st_size / 1024:.0f} KiB")
    total = sum(path.stat().st_size for path in asked.into.glob("*.clip"))
    log(f"{asked.into} holds {total / 2**20:.1f} MiB")
    return 0


def _chosen(timelines: Sequence[Planned], only: Sequence[str] | None) -> list[Planned]:
    """Return the timelines of these rows or names; raises ``ClipError`` for an unknown one."""
    if not only:
        return list(timelines)
    chosen = [t for t in timelines if any(name in (t.row, t.label) for name in only)]
    known = {t.row for t in timelines} | {t.label for t in timelines}
    if unknown := [name for name in only if name not in known]:
        raise ClipError(f"no timeline is called {unknown[0]!r} (see --list)")
    return chosen


def _play(asked: argparse.Namespace, chosen: Sequence[Planned]) -> int:
    checkouts = [Checkout.here()]
    if asked.against is not None:
        checkouts.append(Checkout.of(asked.against))
    progress = Progress(asked.progress)
    results = progress.load()
    done = {each.label for each in results}
    with tempfile.TemporaryDirectory(prefix="reveal-scenarios-") as folder, Broker() as broker:
        client = redis.Redis(unix_socket_path=str(broker.socket))
        player = Player(client, broker.url, Path(folder), checkouts)
        try:
            for number, plan in enumerate(chosen, 1):
                if plan.label not in done:
                    fresh = _played(player, plan, checkouts)
                    progress.add(fresh)
                    results += fresh
                    log(f"{number} of {len(chosen)}: {_sentence(fresh)}")
        finally:
            player.close()
    selected = {plan.label for plan in chosen}
    results = [each for each in results if each.label in selected]
    for checkout in checkouts:
        print(*summary.misses(results, checkout.name), sep="\n")
    for checkout in checkouts:
        print(*summary.table(results, checkout.name), sep="\n")
    summary.write(asked.out, results, [checkout.name for checkout in checkouts])
    return 0


def _played(player: Player, plan: Planned, checkouts: Sequence[Checkout]) -> list[Result]:
    timeline = plan.make()
    try:
        played = player.play(timeline)
    except (AnalyzerError, StreamError) as error:
        return [
            Result(
                timeline.row, timeline.label, timeline.seed, timeline.seconds, checkout.name,
                error=str(error),
            )
            for checkout in checkouts
        ]  # fmt: skip
    return [
        Result.of(timeline, each.checkout, judge(timeline, each, played.values))
        for each in played.played
    ]


def _sentence(results: Sequence[Result]) -> str:
    words = [f"{each.checkout} {'right' if each.right else 'wrong'}" for each in results]
    return f"{results[0].label} ({results[0].seconds} s): {', '.join(words)}"


if __name__ == "__main__":
    sys.exit(main())
