"""Page ``docs/reference/cli.md``: every command and flag, from the parsers themselves.

``python -m reveal_cli.flags_page`` prints it; ``make docs`` writes it.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence

_INTRO = """\
# Command line

Made by `make docs` from the parsers of the programs: change it there.

| program | what it does |
|---|---|
| `reveal` | scans one host, judges recordings and tables; no Kubernetes needed |
| `kubectl-reveal` | `reveal` under another name, for `kubectl reveal`; no other commands |
| `reveal-collector` | reads one host and sends it to Redis, as the pods of a DaemonSet do |
| `reveal-analyzer` | reads Redis and writes findings, as the pods of a Deployment do |
| `reveal-operator` | turns RevealProfiles into collectors and analyzers |

Durations: `90`, `90s`, `3m`, `1h30m`, or `forever`. Exit codes: [formats](formats.md#exit-codes).
The flags of `reveal-collector` are its settings; most are explained in
[RevealProfile](api-revealprofile.md#speccollector).
"""
_UNTITLED = ("positional arguments", "options")
_HEAD = "| argument | meaning |\n|---|---|"


def page(programs: Sequence[argparse.ArgumentParser]) -> str:
    """Return the whole page as Markdown; a program with commands gets a section for each."""
    lines = [_INTRO]
    for program in programs:
        lines += _program(program)
    return "\n".join(lines)


def _program(program: argparse.ArgumentParser) -> Iterator[str]:
    yield f"## {program.prog}\n"
    commands = _commands(program)
    if not commands:
        yield from _section(program)
        return
    yield f"{_sentence(program)}\n"
    yield "| command | what it does |\n|---|---|"
    for name, (parser, meaning) in commands.items():
        yield f"| [`{program.prog} {name}`](#{_anchor(parser.prog)}) | {_cell(meaning)} |"
    yield ""
    for parser, _ in commands.values():
        yield f"### {parser.prog}\n"
        yield from _section(parser)


def _commands(
    program: argparse.ArgumentParser,
) -> dict[str, tuple[argparse.ArgumentParser, str]]:
    """Return the commands of a program by name, each with the line that its parent's help has."""
    found = {}
    for action in program._actions:
        if isinstance(action, argparse._SubParsersAction):
            meanings = {entry.dest: entry.help or "" for entry in action._choices_actions}
            found = {
                name: (command, meanings.get(name, "")) for name, command in action.choices.items()
            }
    return found


def _section(parser: argparse.ArgumentParser) -> Iterator[str]:
    yield f"{_sentence(parser)}\n"
    for title, rows in _tables(parser).items():
        if title:
            yield f"**{title}**\n"
        yield "\n".join([_HEAD, *rows, ""])


def _tables(parser: argparse.ArgumentParser) -> dict[str, list[str]]:
    """Return the rows by the title of their group; what argparse groups itself has none."""
    found: dict[str, list[str]] = {}
    for group in parser._action_groups:
        title = "" if group.title in _UNTITLED else group.title or ""
        rows = [_row(parser, action) for action in group._group_actions if _is_public(action)]
        if rows:
            found.setdefault(title, []).extend(rows)
    return found


def _is_public(action: argparse.Action) -> bool:
    hidden = action.help == argparse.SUPPRESS
    return not hidden and not isinstance(action, argparse._HelpAction)


def _row(parser: argparse.ArgumentParser, action: argparse.Action) -> str:
    meaning = (action.help or "") % {**vars(action), "prog": parser.prog}
    if action.choices is not None and action.metavar is not None:
        meaning = f"{meaning}: {', '.join(map(str, action.choices))}" if meaning else ""
    required = " (required)" if action.option_strings and action.required else ""
    return f"| {_cell(_usage(action))} | {_cell(meaning)}{required} |"


def _usage(action: argparse.Action) -> str:
    """Return how an argument is written: its flags, and what follows them."""
    value = _value(action)
    if not action.option_strings:
        return f"`{value}`"
    flags = "`, `".join(action.option_strings)
    return f"`{flags} {value}`" if value else f"`{flags}`"


def _value(action: argparse.Action) -> str:
    if action.nargs == 0:
        return ""
    name = action.metavar or action.dest.upper()
    if action.metavar is None and action.choices is not None:
        name = "{" + ",".join(map(str, action.choices)) + "}"
    word = name if isinstance(name, str) else " ".join(name)
    return {"?": f"[{word}]", "*": f"[{word}…]", "+": f"{word}…"}.get(str(action.nargs), word)


def _sentence(parser: argparse.ArgumentParser) -> str:
    """Return a description on one line; flags in it become code."""
    text = " ".join((parser.description or "").split()).replace("``", "`")
    return text % {"prog": parser.prog} if "%(" in text else text


def _anchor(heading: str) -> str:
    return heading.lower().replace(" ", "-")


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def programs() -> list[argparse.ArgumentParser]:
    """Return the parsers of all programs; only this page needs them together."""
    from reveal_analyzer import __main__ as analyzer  # noqa: PLC0415 - needs extras
    from reveal_cli import __main__ as reveal  # noqa: PLC0415
    from reveal_collector import command as collector  # noqa: PLC0415
    from reveal_operator import __main__ as operator  # noqa: PLC0415

    return [reveal.build_parser(), collector.parser(), analyzer.parser(), operator.parser()]


if __name__ == "__main__":
    sys.stdout.write(page(programs()))
