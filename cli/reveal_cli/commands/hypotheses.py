"""``reveal hypotheses``: list the known causes, show one in full, or check a file of causes."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import RenderableType
from rich.text import Text

from reveal_cli.errors import DONE, ERROR, USAGE, CliError
from reveal_cli.interrupt import Interrupt
from reveal_cli.terminal import grid, show
from reveal_contract.metric import Subsystem

if TYPE_CHECKING:
    from reveal_analyzer.hypotheses.model import HypothesisRule


def add(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare the command and its flags."""
    parser = commands.add_parser(
        "hypotheses",
        help="list the known causes, show one in full, or check a file of your own",
        description="Lists the causes that are known by name. Those marked * are certain: they"
        " raise a finding by themselves. The others explain findings. docs/how-to/add-a-cause.md"
        " describes how to write your own.",
        epilog="Example: reveal hypotheses CPUContention. Exit codes: 0 done, 1 a file cannot be"
        " used, 2 wrong usage.",
    )
    parser.add_argument("name", metavar="NAME", nargs="?", help="show this cause in full")
    parser.add_argument(
        "--file", metavar="FILE", type=Path, action="append", default=[],
        help="a file or folder of your own in addition to the built-in ones; can be given several"
        " times",
    )  # fmt: skip
    shape = parser.add_mutually_exclusive_group()
    shape.add_argument("--json", action="store_true", help="print JSON instead")
    shape.add_argument("--markdown", action="store_true", help="print Markdown instead")
    shape.add_argument(
        "--schema", action="store_true", help="print the JSON Schema of such files, for editors"
    )
    shape.add_argument(
        "--check", metavar="FILE", type=Path, action="append", default=[],
        help="only check whether a file or folder can be used, and what it changes",
    )  # fmt: skip
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace, interrupt: Interrupt) -> int:
    """Print the hypotheses, the schema or the result of a check."""
    with interrupt.raising():
        if arguments.schema:
            from reveal_analyzer.hypotheses.json_schema import (  # noqa: PLC0415 - numpy, an extra
                json_schema,
            )

            print(json.dumps(json_schema(), indent=1, ensure_ascii=False))
            return DONE
        rules = loaded([*arguments.file, *arguments.check])
        if arguments.check:
            lines = list(check_lines(arguments.check, rules))
        elif arguments.json or arguments.markdown:
            lines = [document(arguments, rules)]
        else:
            show(*blocks(arguments.name, rules))
            return DONE
    print("\n".join(lines))
    return DONE


def loaded(paths: Sequence[Path]) -> tuple[HypothesisRule, ...]:
    """Return the built-in hypotheses with those of these files and folders."""
    from reveal_analyzer.hypotheses.loader import (  # noqa: PLC0415 - needs an extra
        HypothesisError,
        load,
    )

    try:
        return load([str(path) for path in paths])
    except HypothesisError as error:
        raise CliError(str(error), ERROR) from None


def check_lines(paths: Sequence[Path], rules: Sequence[HypothesisRule]) -> Iterator[str]:
    """Yield what each file adds to the built-in hypotheses, replaces or disables."""
    from reveal_analyzer.hypotheses.loader import files  # noqa: PLC0415 - needs an extra

    known = {rule.name for rule in loaded(())}
    for path in paths:
        for file in files(path):
            own = {rule.name for rule in rules if rule.source == str(file)}
            added, replaced = sorted(own - known), sorted(own & known)
            changes = [f"adds {', '.join(added)}" if added else ""]
            changes.append(f"replaces {', '.join(replaced)}" if replaced else "")
            yield f"{file}: can be used; {'; '.join(filter(None, changes)) or 'adds nothing'}"
    if disabled := sorted(known - {rule.name for rule in rules}):
        yield f"disabled: {', '.join(disabled)}"


def document(arguments: argparse.Namespace, rules: Sequence[HypothesisRule]) -> str:
    """Return the list, or the named hypothesis, as JSON or Markdown."""
    from reveal_analyzer.hypotheses import page  # noqa: PLC0415 - numpy, for --help too
    from reveal_analyzer.hypotheses.parser import plain  # noqa: PLC0415

    if arguments.name is not None:
        rule = find(arguments.name, rules)
        if arguments.markdown:
            return "\n".join([f"# {rule.name}", "", *page.section(rule)])
        return json.dumps(plain(rule) | {"source": rule.source}, indent=1, ensure_ascii=False)
    if arguments.markdown:
        return page.page(rules).rstrip("\n")
    rows = [plain(rule) | {"source": rule.source} for rule in rules]
    return json.dumps(rows, indent=1, ensure_ascii=False)


def find(name: str, rules: Sequence[HypothesisRule]) -> HypothesisRule:
    """Return the hypothesis of this name, in any case; raises ``CliError``."""
    for rule in rules:
        if rule.name.lower() == name.lower():
            return rule
    near = [rule.name for rule in rules if name.lower() in rule.name.lower()]
    hint = f": did you mean {' or '.join(near)}?" if near else "; `reveal hypotheses` lists all"
    raise CliError(f"there is no hypothesis {name}{hint}", USAGE)


def blocks(name: str | None, rules: Sequence[HypothesisRule]) -> Iterator[RenderableType]:
    """Yield the list, or the named hypothesis in full."""
    if name is not None:
        rule = find(name, rules)
        yield Text(f"{rule.name} ({rule.subsystem.value}, {rule.source})", style="bold")
        yield grid(_parts(rule), indent=2)
        return
    order = list(Subsystem)
    ordered = sorted(rules, key=lambda rule: order.index(rule.subsystem))
    for subsystem, group in groupby(ordered, lambda rule: rule.subsystem):
        yield Text(subsystem.value, style="bold")
        yield grid(_listed(rule) for rule in group)
        yield ""
    certain = sum(1 for rule in rules if rule.certain)
    yield f"{len(rules)} hypotheses; {certain} are certain (*): they need no baseline."
    yield "`reveal hypotheses NAME` shows one in full."


def _listed(rule: HypothesisRule) -> tuple[RenderableType, RenderableType]:
    """Return name and claim; a hypothesis of the user also has its file."""
    mark = "*" if rule.certain else " "
    file = f"  [{rule.source}]" if "/" in rule.source else ""
    return Text.assemble(f"{mark} ", (rule.name, "cyan")), rule.claim + file


def _parts(rule: HypothesisRule) -> Iterator[tuple[str, str]]:
    """Yield the parts of a hypothesis with their titles."""
    from reveal_analyzer.hypotheses import page  # noqa: PLC0415 - numpy, for --help too

    parts: list[tuple[str, Sequence[str]]] = [
        ("claim", [rule.claim]),
        ("fix", [rule.remediation]),
        ("reference", [rule.reference] if rule.reference else []),
        ("expects", [page.expectation(item) for item in rule.expects]),
        ("contradicted by", [page.contradiction(item) for item in rule.contradicts]),
        ("symptoms", [page.symptom(item) for item in rule.symptoms]),
        ("culprit", [page.culprit(rule)]),
        ("victims", [f"by {', '.join(rule.victims)}"] if rule.victims else []),
    ]
    if rule.certain:
        seconds = f"{rule.certain.severity.value}, {page.duration(rule.certain)}"
        parts.insert(3, ("certain", [seconds, *page.signature(rule.certain)]))
    for title, lines in parts:
        for number, line in enumerate(lines):
            yield title if number == 0 else "", line.replace("`", "")
