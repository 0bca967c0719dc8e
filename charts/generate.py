"""Generate the parts of the chart that repeat ``crds/`` and ``charts/reveal/values.yaml``.

    python charts/generate.py          write the files that changed
    python charts/generate.py --check  exit with 1 and name the files that are out of date

- The templates of the CustomResourceDefinitions.
- The schema of ``profiles`` in values.schema.json.  The API server silently drops unknown fields
  of what Helm sends, so only this schema shows a typing error in a profile.
- The table of values in the README.  The comment above a key that begins with ``# --`` describes
  the key.
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
    """A source file cannot become a part of the chart; the text says where and why."""


@dataclass(frozen=True)
class Value:
    """One row of the table: a dotted path, its default as JSON, its description."""

    path: str
    default: str
    meaning: str


def template(definition: str) -> str:
    """Return a file of ``crds/`` as a template of the chart.

    The chart adds labels and annotations, so the file may have none.  Only API servers that support
    selectable fields get them.
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
    """Yield the lines, with the block of selectable fields under a condition."""
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
    """Return whether a line is past the block of a key at ``depth``, where list items may be."""
    return indent < depth or (indent == depth and not stripped.startswith("- "))


def profile_schema(definition: str) -> dict[str, Any]:
    """Return the ``spec`` of a profile as a JSON Schema that refuses other keys."""
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
    """Return values.schema.json with the schema of a profile, one line, replaced."""
    line = f'    "profile": {json.dumps(profile, separators=(",", ":"))},'
    if len(_PROFILE_LINE.findall(before)) != 1:
        raise ChartError(
            'values.schema.json must hold one line that begins with `    "profile": {`'
        )
    return _PROFILE_LINE.sub(lambda _: line, before)


def values(text: str) -> list[Value]:
    """Return the rows of values.yaml; raise ``ChartError`` for a leaf without a comment."""
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
    """Return the comment directly above a key, from its mark on, or an empty string."""
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
    """Return the rows as a Markdown table."""
    lines = ["| value | default | what |", "|---|---|---|"]
    for row in rows:
        cells = (f"`{row.path}`", f"`{row.default}`", row.meaning)
        lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    return "\n".join(lines)


def readme(before: str, rows: list[Value]) -> str:
    """Return the README with the table between its marks replaced."""
    if before.count(BEGIN) != 1 or before.count(END) != 1:
        raise ChartError(f"README.md must hold {BEGIN} and {END}, once each")
    head, _, rest = before.partition(BEGIN)
    return f"{head}{BEGIN}\n\n{table(rows)}\n\n{END}{rest.partition(END)[2]}"


def generated() -> dict[Path, str]:
    """Return every generated file with the content that it should have."""
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


def _differs(path: Path, text: str) -> bool:
    return not path.exists() or path.read_text() != text


def main() -> int:
    """Return the exit status: 1 with ``--check`` if a file is out of date, else 0."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument(
        "--check", action="store_true", help="write nothing; name the files that are out of date"
    )
    checking = parser.parse_args().check
    contents = generated()
    extra = [path for path in _templates().glob("*.yaml") if path not in contents]
    stale = [path for path, text in contents.items() if _differs(path, text)]
    if checking:
        for path in [*stale, *extra]:
            sys.stderr.write(f"{path.relative_to(ROOT)} is out of date: run `make chart`\n")
        return 1 if stale or extra else 0
    _templates().mkdir(exist_ok=True)
    for path in extra:
        path.unlink()
    for path in stale:
        path.write_text(contents[path])
    return 0


if __name__ == "__main__":
    sys.exit(main())
