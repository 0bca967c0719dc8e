"""Loading hypotheses: the built-in files, then the user's; later names replace earlier ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from importlib import resources
from pathlib import Path
from typing import Any

import yaml

from reveal_analyzer.hypotheses.model import (
    FORMAT_VERSION,
    CertainSignature,
    HypothesisError,
    HypothesisRule,
    Removal,
)
from reveal_analyzer.hypotheses.parser import read
from reveal_contract import ledger

__all__ = ["HypothesisError", "HypothesisRule", "Removal", "files", "load", "parse"]

SUFFIXES = (".yaml", ".yml")
_TOP = ("version", "hypotheses")


def load(extra: Sequence[str] = ()) -> tuple[HypothesisRule, ...]:
    """Return the built-in hypotheses and those of further files or folders, in order.

    A later name replaces an earlier one; ``disabled`` removes it.
    """
    here = resources.files(__package__)
    texts = [
        (item.name, item.read_text()) for item in here.iterdir() if _is_hypotheses_file(item.name)
    ]
    texts.sort()
    for path in extra:
        texts += [(str(file), _text(file)) for file in files(Path(path))]
    rules: dict[str, HypothesisRule] = {}
    for name, text in texts:
        for entry in parse(text, name):
            if isinstance(entry, HypothesisRule):
                rules[entry.name] = entry
            elif rules.pop(entry.name, None) is None:
                raise HypothesisError(
                    f"{name}: {entry.name}: disabled, but no earlier file has a hypothesis of"
                    " that name"
                )
    return tuple(rules.values())


def files(path: Path) -> list[Path]:
    """Return the file itself, or the hypotheses files of a folder, sorted by name."""
    try:
        if not path.is_dir():
            return [path]
        found = sorted(item for item in path.iterdir() if _is_hypotheses_file(item.name))
    except OSError as error:
        raise HypothesisError(f"{path}: {error.strerror}") from None
    if not found:
        raise HypothesisError(f"{path}: no {' or '.join(SUFFIXES)} file in this folder")
    return found


def parse(text: str, where: str) -> tuple[HypothesisRule | Removal, ...]:
    """Return the entries of one file; ``HypothesisError`` names file, entry and key."""
    entries: dict[str, HypothesisRule | Removal] = {}
    for number, data in enumerate(_listed(text, where), 1):
        entry = _entry(data, where, number)
        if entry.name in entries:
            raise HypothesisError(f"{where}: {entry.name}: is defined twice in this file")
        entries[entry.name] = entry
    return tuple(entries.values())


def _is_hypotheses_file(name: str) -> bool:
    return name.endswith(SUFFIXES) and not name.startswith(".")


class _Loader(yaml.SafeLoader):
    """A loader without aliases: a few of them stand for gigabytes."""

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:
        if self.check_event(yaml.AliasEvent):
            mark = self.peek_event().start_mark  # type: ignore[no-untyped-call]
            raise yaml.YAMLError(f"line {mark.line + 1} has an alias (*)")
        return super().compose_node(parent, index)


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise HypothesisError(f"{path}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise HypothesisError(f"{path}: is not text (UTF-8)") from None


def _listed(text: str, where: str) -> list[Any]:
    """Return the entries as plain data after checking the top-level keys."""
    try:
        data = yaml.load(text, _Loader)  # noqa: S506 - a SafeLoader
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        message = " ".join(str(error).split())
        raise HypothesisError(f"{where} is not YAML: {message or 'nested too deeply'}") from None
    if not isinstance(data, dict) or data.get("version") != FORMAT_VERSION:
        raise HypothesisError(f"{where}: must be a mapping with version: {FORMAT_VERSION}")
    if extra := [str(given) for given in data if given not in _TOP]:
        raise HypothesisError(f"{where}: unknown key {extra[0]}; allowed are {', '.join(_TOP)}")
    entries = data.get("hypotheses") or []
    if not isinstance(entries, list):
        raise HypothesisError(f"{where}: hypotheses: must be a list")
    return entries


def _entry(data: Any, where: str, number: int) -> HypothesisRule | Removal:
    has_name = isinstance(data, dict) and isinstance(data.get("name"), str)
    location = f"{where}: {data['name'][:63] if has_name else f'entry {number}'}"
    if isinstance(data, dict) and data.get("disabled") is True:
        return read(Removal, {"name": data.get("name")}, location)
    rule = replace(read(HypothesisRule, data, location), source=where)
    if rule.certain:
        _check_signature(rule, rule.certain, location)
    return rule


def _check_signature(rule: HypothesisRule, certain: CertainSignature, location: str) -> None:
    """Raise ``HypothesisError`` for a signature whose keys do not fit together."""
    if not (certain.conditions or certain.any):
        raise HypothesisError(
            f"{location}: certain: all or any is missing (at least one condition)"
        )
    if certain.needs_loss and rule.lost_part != ledger.IRQ:
        raise HypothesisError(
            f"{location}: certain: needs_loss is only for lost_part: {ledger.IRQ}; add that or"
            " leave it out"
        )
