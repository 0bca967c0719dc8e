"""Which hypotheses there are: the built-in files and the user's, later names over earlier ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from importlib import resources
from pathlib import Path
from typing import Any

import yaml

from reveal_analyzer.hypotheses.model import FORMAT_VERSION, HypothesisError, Removal, Rule
from reveal_analyzer.hypotheses.parser import read

__all__ = ["HypothesisError", "Removal", "Rule", "files", "load", "parse"]

SUFFIXES = (".yaml", ".yml")
_TOP = ("version", "hypotheses")


def load(extra: Sequence[str] = ()) -> tuple[Rule, ...]:
    """The built-in hypotheses and those of further files or folders of them, in order.

    A later name replaces an earlier one in its place; ``disabled`` takes it away.
    """
    here = resources.files(__package__)
    texts = [(item.name, item.read_text()) for item in here.iterdir() if _is_one(item.name)]
    texts.sort()
    for path in extra:
        texts += [(str(file), _text(file)) for file in files(Path(path))]
    rules: dict[str, Rule] = {}
    for name, text in texts:
        for entry in parse(text, name):
            if isinstance(entry, Rule):
                rules[entry.name] = entry
            elif rules.pop(entry.name, None) is None:
                raise HypothesisError(
                    f"{name}: {entry.name}: disabled, but no earlier file has a hypothesis of"
                    " that name"
                )
    return tuple(rules.values())


def files(path: Path) -> list[Path]:
    """The file itself, or the hypotheses files of a folder by name."""
    try:
        if not path.is_dir():
            return [path]
        found = sorted(item for item in path.iterdir() if _is_one(item.name))
    except OSError as error:
        raise HypothesisError(f"{path}: {error.strerror}") from None
    if not found:
        raise HypothesisError(f"{path}: no {' or '.join(SUFFIXES)} file in this folder")
    return found


def parse(text: str, where: str) -> tuple[Rule | Removal, ...]:
    """The entries of one file; raises ``HypothesisError`` that names file, entry and key."""
    entries: dict[str, Rule | Removal] = {}
    for number, data in enumerate(_listed(text, where), 1):
        entry = _entry(data, where, number)
        if entry.name in entries:
            raise HypothesisError(f"{where}: {entry.name}: stands twice in this file")
        entries[entry.name] = entry
    return tuple(entries.values())


def _is_one(name: str) -> bool:
    return name.endswith(SUFFIXES) and not name.startswith(".")


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise HypothesisError(f"{path}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise HypothesisError(f"{path}: is not text (UTF-8)") from None


def _listed(text: str, where: str) -> list[Any]:
    """The raw entries, once the head of the file is right."""
    try:
        data = yaml.safe_load(text)
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        said = " ".join(str(error).split())
        raise HypothesisError(f"{where} is not YAML: {said or 'nested too deeply'}") from None
    if not isinstance(data, dict) or data.get("version") != FORMAT_VERSION:
        raise HypothesisError(f"{where}: must be a mapping with version: {FORMAT_VERSION}")
    if extra := [str(given) for given in data if given not in _TOP]:
        raise HypothesisError(f"{where}: unknown key {extra[0]}; allowed are {', '.join(_TOP)}")
    entries = data.get("hypotheses") or []
    if not isinstance(entries, list):
        raise HypothesisError(f"{where}: hypotheses: must be a list")
    return entries


def _entry(data: Any, where: str, number: int) -> Rule | Removal:
    named = isinstance(data, dict) and isinstance(data.get("name"), str)
    place = f"{where}: {data['name'][:63] if named else f'entry {number}'}"
    if isinstance(data, dict) and data.get("disabled") is True:
        return read(Removal, {"name": data.get("name")}, place)
    rule = replace(read(Rule, data, place), source=where)
    if rule.certain and not (rule.certain.conditions or rule.certain.any):
        raise HypothesisError(f"{place}: certain: lacks all or any (at least one condition)")
    return rule
