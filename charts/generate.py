"""Writes what the chart holds twice: it is in ``crds/`` and in ``charts/reveal/values.yaml``.

    python charts/generate.py          writes what changed
    python charts/generate.py --check  exits with 1 and says what is out of date

- templates of the CustomResourceDefinitions;
- the schema of ``profiles`` in values.schema.json: of what Helm sends the API server drops fields
  that it does not know, so a slip of the pen in a profile would pass in silence;
- the table of values in the README: a value is described by the comment above its key that begins
  with ``# --``.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parents[1]
CHART = ROOT / "charts" / "reveal"
PROFILES = "revealprofiles.yaml"
BEGIN, END = "<!-- values -->", "<!-- /values -->"
# stable since 1.32; an older API server may refuse the field, or drop it with a warning
_SELECTABLE = "selectableFields:"
_SELECTABLE_IF = '{{- if semverCompare ">=1.32.0-0" .Capabilities.KubeVersion.Version }}'
_MARK = "# --"
_PROFILE_LINE = re.compile(r'^    "profile": \{.*$', flags=re.MULTILINE)
# what JSON Schema (draft 7) and OpenAPI 3 have in common
_SHARED = (
    "type", "enum", "pattern", "minimum", "maximum", "minLength", "maxLength", "minItems",
    "maxItems", "minProperties", "maxProperties", "required",
)  # fmt: skip


class ChartError(Exception):
    """A source that cannot be made into a part of the chart; the text says where and why."""


@dataclass(frozen=True)
class Value:
    """One row of the table: a dotted path, its default as JSON, what it is for."""

    path: str
    default: str
    meaning: str


def template(definition: str) -> str:
    """A file of ``crds/`` as a template of the chart.

    Its labels and annotations are the chart's, so it may have none of its own; and fields that
    are selected by are shown to API servers that know them.
    """
    if set(yaml.safe_load(definition)["metadata"]) != {"name"}:
        raise ChartError("metadata of a definition must be a name and nothing else")
    escaped = definition.replace("{{", "{{ `{{` }}")
    body = "\n".join(_conditional(escaped.splitlines()))
    named = re.sub(
        r"^(metadata:\n)", r'\1  {{- include "reveal.crdMetadata" . | nindent 2 }}\n', body,
        count=1, flags=re.MULTILINE,
    )  # fmt: skip
    return f"{{{{- if .Values.crds.enabled }}}}\n{named}\n{{{{- end }}}}\n"


def _conditional(lines: list[str]) -> Iterator[str]:
    """The lines with the block of selectable fields under a condition."""
    depth: int | None = None
    for line in lines:
        stripped = line.lstrip()
        indent = len(line) - len(stripped)
        if depth is not None and _leaves(stripped, indent, depth):
            yield " " * depth + "{{- end }}"
            depth = None
        if stripped.startswith(_SELECTABLE):
            depth = indent
            yield " " * depth + _SELECTABLE_IF
        yield line
    if depth is not None:
        yield " " * depth + "{{- end }}"


def _leaves(stripped: str, indent: int, depth: int) -> bool:
    """Whether a line is past the block of a key at ``depth``; items of its list may be as deep."""
    return indent < depth or (indent == depth and not stripped.startswith("- "))


def profile_schema(definition: str) -> dict[str, Any]:
    """The ``spec`` of a profile as JSON Schema that knows no other keys."""
    [version] = yaml.safe_load(definition)["spec"]["versions"]
    return _closed(version["schema"]["openAPIV3Schema"]["properties"]["spec"])


def _closed(node: dict[str, Any]) -> dict[str, Any]:
    kept = {key: node[key] for key in _SHARED if key in node}
    if node.get("x-kubernetes-int-or-string"):
        kept["type"] = ["integer", "string"]
    if "items" in node:
        kept["items"] = _closed(node["items"])
    if "properties" in node:
        kept["properties"] = {name: _closed(each) for name, each in node["properties"].items()}
        kept["additionalProperties"] = False
    elif "additionalProperties" in node:
        kept["additionalProperties"] = _closed(node["additionalProperties"])
    return kept


def schema(before: str, profile: dict[str, Any]) -> str:
    """values.schema.json with the schema of a profile anew, on the one line that it has there."""
    line = f'    "profile": {json.dumps(profile, separators=(",", ":"))},'
    if len(_PROFILE_LINE.findall(before)) != 1:
        raise ChartError(
            'values.schema.json must hold one line that begins with `    "profile": {`'
        )
    return _PROFILE_LINE.sub(lambda _: line, before)


def values(text: str) -> list[Value]:
    """The rows of values.yaml in its order; ``ChartError`` for a leaf that nothing describes."""
    root = yaml.compose(text, Loader=yaml.SafeLoader)
    if not isinstance(root, yaml.MappingNode):
        raise ChartError("values are not a map")
    return list(_rows(root, "", text.splitlines()))


def _rows(node: yaml.MappingNode, prefix: str, lines: list[str]) -> Iterator[Value]:
    for key, value in node.value:
        path = f"{prefix}{key.value}"
        meaning = _meaning(lines, key.start_mark.line)
        if meaning:
            yield Value(path, _default(value), meaning)
        elif isinstance(value, yaml.MappingNode) and value.value:
            yield from _rows(value, f"{path}.", lines)
        else:
            raise ChartError(f"values.yaml, line {key.start_mark.line + 1}: no `# --` above {path}")


def _meaning(lines: list[str], line: int) -> str:
    """The comment right above a key, from its mark on; empty where there is none."""
    comment: list[str] = []
    for above in reversed(lines[:line]):
        stripped = above.strip()
        if not stripped.startswith("#"):
            break
        if stripped.startswith(_MARK):
            return " ".join([stripped[len(_MARK) :].strip(), *reversed(comment)])
        comment.append(stripped.lstrip("#").strip())
    return ""


def _default(node: yaml.Node) -> str:
    return json.dumps(yaml.safe_load(yaml.serialize(node)))


def table(rows: list[Value]) -> str:
    """The rows as a table of Markdown."""
    lines = ["| value | default | what |", "|---|---|---|"]
    for row in rows:
        cells = (f"`{row.path}`", f"`{row.default}`", row.meaning)
        lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    return "\n".join(lines)


def readme(before: str, rows: list[Value]) -> str:
    """The README with the table between its marks anew."""
    if before.count(BEGIN) != 1 or before.count(END) != 1:
        raise ChartError(f"README.md must hold {BEGIN} and {END}, once each")
    head, _, rest = before.partition(BEGIN)
    return f"{head}{BEGIN}\n\n{table(rows)}\n\n{END}{rest.partition(END)[2]}"


def made() -> dict[Path, str]:
    """Every generated file with what it should hold."""
    definitions = {
        path.name.removeprefix("reveal.dev_"): path.read_text()
        for path in sorted((ROOT / "crds").glob("*.yaml"))
    }
    files = {_templates() / name: template(text) for name, text in definitions.items()}
    checked, page = CHART / "values.schema.json", CHART / "README.md"
    files[checked] = schema(checked.read_text(), profile_schema(definitions[PROFILES]))
    files[page] = readme(page.read_text(), values((CHART / "values.yaml").read_text()))
    return files


def _templates() -> Path:
    return CHART / "templates" / "crds"


def main() -> int:
    """Exit status: 0, or 1 with ``--check`` where a file is out of date."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--check", action="store_true", help="write nothing, say what would change")
    checking = parser.parse_args().check
    wanted = made()
    extra = [path for path in _templates().glob("*.yaml") if path not in wanted]
    stale = [path for path, text in wanted.items() if not path.exists() or path.read_text() != text]
    if checking:
        for path in [*stale, *extra]:
            sys.stderr.write(f"{path.relative_to(ROOT)} is out of date: run `make chart`\n")
        return 1 if stale or extra else 0
    _templates().mkdir(exist_ok=True)
    for path in extra:
        path.unlink()
    for path in stale:
        path.write_text(wanted[path])
    return 0


if __name__ == "__main__":
    sys.exit(main())
