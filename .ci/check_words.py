"""Fail on identifiers and prose that use private words instead of the field's terms.

Usage: ``python .ci/check_words.py [PATH...]``; without paths it reads every tracked file.  It
checks the names that Python code defines (functions, classes, parameters, variables, attributes,
modules), its docstrings and comments, and the prose of Markdown pages.
"""

from __future__ import annotations

import ast
import io
import re
import subprocess
import sys
import tokenize
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

# word in an identifier -> what to write instead
IDENTIFIERS = {
    "told": "message, reported, metrics", "tell": "report, publish", "tells": "reports",
    "telling": "publishing, policy", "teller": "publisher", "said": "message, logged",
    "say": "message, log", "says": "message, log", "at": "index, position, time",
    "one": "item, or the noun", "ones": "items, or the noun", "made": "result",
    "wanted": "desired, requested", "seen": "observed", "shown": "displayed, weighted",
    "held": "sustained, current", "usual": "baseline, normal", "past": "history",
    "cut": "threshold", "cuts": "thresholds", "vote": "metric group", "votes": "metric groups",
    "sureness": "confidence", "trio": "paper detectors", "trouble": "error", "troubles": "errors",
    "lacking": "missing", "lacks": "missing", "ailment": "health error",
    "thrift": "slowdown factor", "spare": "optional",
    "frugal": "low memory", "excused": "suppressed",
    "blamed": "pod_notified",
    "unheld": "orphaned", "stirred": "changed", "heart": "job monitor", "glimpse": "recent excess",
    "glimpses": "recent excess", "course": "slowdown state", "casebook": "finding tracker",
    "rota": "poll schedule", "tenant": "subject", "tenants": "subjects", "anew": "again",
    "mend": "fix", "mended": "fixed", "place": "index, position", "places": "indices, positions",
}  # fmt: skip

# phrase in prose -> what to write instead
PROSE = {
    "told": "reported", "tells of": "shows", "anew": "again", "mend": "fix", "mends": "fixes",
    "mended": "fixed", "of its own accord": "by itself", "is done with": "is processed",
    "by fits": "intermittently", "wherein": "in which", "whereby": "by which",
    "gives way": "is reduced", "gave way": "was reduced", "lacks": "has no", "aside": "apart from",
    "besides": "also", "teller": "publisher", "casebook": "finding tracker",
    "held against": "compared with", "the usual": "the baseline", "its usual": "its baseline",
    "goes without": "runs without", "of anyone's": "from other tools", "ailment": "health error",
    "sureness": "confidence", "thrift": "slowdown factor", "frugal": "low memory",
    "unheld": "orphaned", "hold against": "compare with", "holds against": "compares with",
}  # fmt: skip

_TOKEN = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
_PROSE = re.compile(
    r"(?<![\w`-])("
    + "|".join(sorted(map(re.escape, PROSE), key=len, reverse=True))
    + r")(?![\w`-])",
    re.IGNORECASE,
)
_SKIPPED = re.compile(r"(^|/)(fixtures|results|locks?)/|CHANGELOG\.md$|\.ci/check_words\.py$")


class Problem(NamedTuple):
    """One use of a word that the project does not use."""

    file: Path
    line: int
    word: str
    instead: str

    def __str__(self) -> str:
        hint = f": write {self.instead}" if self.instead else ""
        return f"{self.file}:{self.line}: {self.word!r}{hint}"


def problems(file: Path) -> Iterator[Problem]:
    """Yield each banned word of a Python file or a Markdown page."""
    text = file.read_text(encoding="utf-8")
    if file.suffix == ".md":
        yield from _in_prose(file, _without_code(text), 1)
        return
    tree = ast.parse(text)
    for line, name in [(1, file.stem), *_defined(tree)]:
        for word in _TOKEN.findall(name):
            if word.lower() in IDENTIFIERS:
                yield Problem(file, line, f"{word} in {name}", IDENTIFIERS[word.lower()])
    for line, prose in (*_docstrings(tree), *_comments(text)):
        yield from _in_prose(file, prose, line)


def _in_prose(file: Path, text: str, first: int) -> Iterator[Problem]:
    for match in _PROSE.finditer(text):
        line = first + text.count("\n", 0, match.start())
        yield Problem(file, line, match[1], PROSE[match[1].lower()])


def _without_code(text: str) -> str:
    """Return a page with its code blocks blanked, line numbers kept."""
    return re.sub(r"(?ms)^( *)```.*?^\1```", lambda match: "\n" * match[0].count("\n"), text)


def _defined(tree: ast.AST) -> Iterator[tuple[int, str]]:
    for node in ast.walk(tree):
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                yield node.lineno, node.name
            case ast.arg():
                yield node.lineno, node.arg
            case ast.Name(ctx=ast.Store()):
                yield node.lineno, node.id
            case ast.Attribute(ctx=ast.Store()):
                yield node.lineno, node.attr
            case ast.alias(asname=str(name)):
                yield node.lineno, name
            case ast.ExceptHandler(name=str(name)):
                yield node.lineno, name
            case ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)):
                yield node.lineno, name


def _docstrings(tree: ast.AST) -> Iterator[tuple[int, str]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            docstring = ast.get_docstring(node, clean=False)
            if docstring is not None:
                yield node.body[0].lineno, docstring


def _comments(text: str) -> Iterator[tuple[int, str]]:
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string


def _tracked() -> list[Path]:
    listed = subprocess.run(
        ["git", "ls-files", "-z", "*.py", "*.md"], capture_output=True, text=True, check=True
    )
    return [Path(name) for name in listed.stdout.split("\0") if name]


def _files(arguments: list[str]) -> list[Path]:
    if not arguments:
        return _tracked()
    named = [Path(argument) for argument in arguments]
    tracked = set(_tracked())
    return sorted(
        file for file in tracked if any(file == path or path in file.parents for path in named)
    )


def main(arguments: list[str]) -> int:
    """Print the problems of the files; return 1 if there is one."""
    files = [file for file in _files(arguments) if file.exists() and not _SKIPPED.search(str(file))]
    found = [problem for file in files for problem in problems(file)]
    for problem in found:
        print(problem)
    print(f"{len(found)} banned words in {len(files)} files")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
