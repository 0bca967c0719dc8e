"""Print docs/reference/configuration-rules.md: ``python -m reveal_analyzer.configuration``."""

from __future__ import annotations

import sys

from reveal_analyzer.configuration.evaluate import RULES
from reveal_analyzer.configuration.rule import Rule

_HEAD = """\
# Configuration rules

<!-- made by `python -m reveal_analyzer.configuration`; a test holds it current -->

Some losses need no baseline to be seen: the host is set up so that jobs must lose. The collector
reads the node's *facts* once a minute (processors, clocks, memory, NUMA nodes, PCIe links,
interrupts, network cards, GPUs and where the processes that use them may run), and these rules
are held against them. What breaks one is a finding of kind `Configuration` with all its evidence
at hand: it opens once, and resolves by itself when the fact is mended. It is never an anomaly,
and counts for `--fail-on low` only.

`reveal doctor` shows facts and findings at once, `reveal scan` and `reveal analyze` after the
anomalies. What cannot be read breaks no rule; what a guest sees of its hypervisor's making
(PCIe links, NUMA sizes, CPUs offline) is not judged there.

| rule | subsystem | severity |
|---|---|---|
"""


def page() -> str:
    """All rules in Markdown."""
    rows = [f"| [{r.name}](#{r.name.lower()}) | {r.subsystem} | {r.severity} |" for r in RULES]
    return _HEAD + "\n".join(rows) + "\n" + "".join(_section(rule) for rule in RULES)


def _section(rule: Rule) -> str:
    claim = rule.claim[:1].upper() + rule.claim[1:]
    return (
        f"\n## {rule.name}\n\n> {claim}\n\n{rule.why}\n\n"
        f"- To mend it: {_command(rule.fix)}\n- Reference: {rule.reference}\n"
    )


def _command(fix: str) -> str:
    """As code, unless it holds code of its own or is put together from the facts."""
    if fix == "{advice}":
        return "as the finding says, by what the facts allow"
    command, bracket, remark = fix.partition(" (")
    return f"`{command}`{bracket}{remark}" if "`" not in fix else fix


if __name__ == "__main__":
    sys.stdout.write(page())
