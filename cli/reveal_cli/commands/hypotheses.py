"""``reveal hypotheses``: the known causes, one of them in full, or a check of one's own file."""

from __future__ import annotations

import argparse
import json
import textwrap
from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING

from reveal_cli.errors import DONE, ERROR, USAGE, CliError
from reveal_cli.interrupt import Interrupt
from reveal_cli.summary_text import width
from reveal_contract.metric import Subsystem

if TYPE_CHECKING:
    from reveal_analyzer.hypotheses.model import HypothesisRule

_NAME_WIDTH = 26


def add(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "hypotheses",
        help="list the known causes, show one in full, or check a file of your own",
        description="Lists the causes that are known by name: certain ones raise a finding by"
        " themselves, the others explain what was found. docs/how-to/add-a-cause.md says how to"
        " write your own.",
        epilog="Exit codes: 0 done, 1 a file is not usable, 2 wrong usage.",
    )
    parser.add_argument("name", metavar="NAME", nargs="?", help="show this one in full")
    parser.add_argument(
        "--file", metavar="FILE", type=Path, action="append", default=[],
        help="a file or folder of your own beside the built-in ones; may be given again",
    )  # fmt: skip
    shape = parser.add_mutually_exclusive_group()
    shape.add_argument("--json", action="store_true", help="print JSON instead")
    shape.add_argument("--markdown", action="store_true", help="print Markdown instead")
    shape.add_argument(
        "--schema", action="store_true", help="print the JSON Schema of such files, for editors"
    )
    shape.add_argument(
        "--check", metavar="FILE", type=Path, action="append", default=[],
        help="only say whether a file or folder can be used, and what it changes",
    )  # fmt: skip
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace, interrupt: Interrupt) -> int:
    with interrupt.raising():
        if arguments.schema:
            from reveal_analyzer.hypotheses.json_schema import (  # noqa: PLC0415 - numpy, an extra
                json_schema,
            )

            print(json.dumps(json_schema(), indent=1, ensure_ascii=False))
            return DONE
        rules = loaded([*arguments.file, *arguments.check])
        lines = checked(arguments.check, rules) if arguments.check else shown(arguments, rules)
    print("\n".join(lines))
    return DONE


def loaded(paths: Sequence[Path]) -> tuple[HypothesisRule, ...]:
    """All hypotheses, with those of these files and folders."""
    from reveal_analyzer.hypotheses.loader import (  # noqa: PLC0415 - needs an extra
        HypothesisError,
        load,
    )

    try:
        return load([str(path) for path in paths])
    except HypothesisError as error:
        raise CliError(str(error), ERROR) from None


def checked(paths: Sequence[Path], rules: Sequence[HypothesisRule]) -> Iterator[str]:
    """What each file adds to the built-in hypotheses, replaces or takes away."""
    from reveal_analyzer.hypotheses.loader import files  # noqa: PLC0415 - needs an extra

    known = {rule.name for rule in loaded(())}
    for path in paths:
        for file in files(path):
            mine = {rule.name for rule in rules if rule.source == str(file)}
            added, replaced = sorted(mine - known), sorted(mine & known)
            said = [f"adds {', '.join(added)}" if added else ""]
            said.append(f"replaces {', '.join(replaced)}" if replaced else "")
            yield f"{file}: usable; {'; '.join(filter(None, said)) or 'adds nothing'}"
    if gone := sorted(known - {rule.name for rule in rules}):
        yield f"taken away: {', '.join(gone)}"


def shown(arguments: argparse.Namespace, rules: Sequence[HypothesisRule]) -> Iterator[str]:
    """The list, or the one that was asked for, in the shape that was asked for."""
    from reveal_analyzer.hypotheses import page  # noqa: PLC0415 - numpy, for --help too
    from reveal_analyzer.hypotheses.parser import plain  # noqa: PLC0415

    if arguments.name is not None:
        rule = one(arguments.name, rules)
        if arguments.json:
            yield json.dumps(plain(rule) | {"source": rule.source}, indent=1, ensure_ascii=False)
        elif arguments.markdown:
            yield "\n".join([f"# {rule.name}", "", *page.section(rule)])
        else:
            yield from full(rule, width())
    elif arguments.json:
        rows = [plain(rule) | {"source": rule.source} for rule in rules]
        yield json.dumps(rows, indent=1, ensure_ascii=False)
    elif arguments.markdown:
        yield page.page(rules).rstrip("\n")
    else:
        yield from listing(rules, width())


def one(name: str, rules: Sequence[HypothesisRule]) -> HypothesisRule:
    """The hypothesis of that name, however it is capitalised."""
    found = [rule for rule in rules if rule.name.lower() == name.lower()]
    if not found:
        near = [rule.name for rule in rules if name.lower() in rule.name.lower()]
        hint = f": is {' or '.join(near)} meant?" if near else "; `reveal hypotheses` lists all"
        raise CliError(f"no hypothesis is called {name}{hint}", USAGE)
    return found[0]


def listing(rules: Sequence[HypothesisRule], columns: int) -> Iterator[str]:
    """For people: name, whether it is certain, claim, and the file of one's own ones."""
    order = list(Subsystem)
    ordered = sorted(rules, key=lambda rule: order.index(rule.subsystem))
    for subsystem, group in groupby(ordered, lambda rule: rule.subsystem):
        yield subsystem.value
        for rule in group:
            yield from _row(rule, columns)
        yield ""
    sure = sum(1 for rule in rules if rule.certain)
    yield f"{len(rules)} hypotheses; {sure} are certain (*): they need no baseline."
    yield "`reveal hypotheses NAME` shows one in full."


def _row(rule: HypothesisRule, columns: int) -> Iterator[str]:
    mark = "*" if rule.certain else " "
    origin = f"  [{rule.source}]" if "/" in rule.source else ""
    lines = textwrap.wrap(
        rule.claim + origin, columns - _NAME_WIDTH - 4,
        break_on_hyphens=False, break_long_words=False,
    )  # fmt: skip
    for name, line in zip([rule.name, *[""] * (len(lines) - 1)], lines, strict=True):
        yield f"{mark if name else ' '} {name:<{_NAME_WIDTH}}  {line}"


def full(rule: HypothesisRule, columns: int) -> Iterator[str]:
    """For people: one hypothesis with all that speaks for and against it."""
    from reveal_analyzer.hypotheses import page  # noqa: PLC0415 - numpy, for --help too

    yield f"{rule.name} ({rule.subsystem.value}, {rule.source})"
    parts: list[tuple[str, Sequence[str]]] = [
        ("claim", [rule.claim]),
        ("to do", [rule.remediation]),
        ("reference", [rule.reference] if rule.reference else []),
        ("expects", [page.expectation(item) for item in rule.expects]),
        ("contradicted by", [page.contradiction(item) for item in rule.contradicts]),
        ("symptoms", [page.symptom(item) for item in rule.symptoms]),
        ("culprit", [page.culprit(rule)]),
        ("victims", [f"by {', '.join(rule.victims)}"] if rule.victims else []),
    ]
    if rule.certain:
        matched = f"{rule.certain.severity.value}, {page.duration(rule.certain)}"
        parts.insert(3, ("certain", [matched, *page.signature(rule.certain)]))
    for title, lines in parts:
        for number, line in enumerate(lines):
            head = f"  {title if number == 0 else '':<16}"
            bare = line.replace("`", "")
            yield from textwrap.wrap(
                bare,
                columns,
                initial_indent=head,
                subsequent_indent=" " * 20,
                break_on_hyphens=False,
                break_long_words=False,
            )
