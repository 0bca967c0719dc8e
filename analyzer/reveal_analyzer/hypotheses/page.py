"""Hypotheses in words: docs/reference/hypotheses-list.md, and the parts of one hypothesis."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby

from reveal_analyzer.hypotheses.model import Certain, Condition, Expectation, Rule, Symptom
from reveal_contract.metric import Subsystem

_HEAD = """\
# The known causes

<!-- made by `make docs`; a test holds it current -->

What Reveal knows by name, in the words of the files in `analyzer/reveal_analyzer/hypotheses`.
[add-a-cause.md](../how-to/add-a-cause.md) says how matching works and how to write your own;
`reveal hypotheses NAME` shows one in the terminal. *Certain* ones raise a finding by themselves,
the others explain one that was raised by what they expect.
"""


def page(rules: Iterable[Rule]) -> str:
    """All rules in Markdown, by subsystem."""
    order = list(Subsystem)
    listed = sorted(rules, key=lambda rule: order.index(rule.subsystem))
    lines = [_HEAD, f"{len(listed)} hypotheses.", ""]
    for subsystem, group in groupby(listed, lambda rule: rule.subsystem):
        same = list(group)
        lines += [f"## {subsystem.value}", "", "| name | certain | claim |", "|---|---|---|"]
        lines += [_row(rule) for rule in same]
        for rule in same:
            lines += ["", f"### {rule.name}", "", *section(rule)]
        lines.append("")
    return "\n".join(lines)


def _row(rule: Rule) -> str:
    severity = rule.certain.severity.value if rule.certain else ""
    return f"| [{rule.name}](#{rule.name.lower()}) | {severity} | {rule.claim} |"


def section(rule: Rule) -> Iterator[str]:
    """One rule in full, Markdown."""
    yield f"> {rule.claim}"
    yield ""
    yield f"To do: {rule.remediation}"
    if rule.reference:
        yield f"\nReference: {rule.reference}"
    if rule.certain:
        yield f"\nCertain, {rule.certain.severity.value}, {held(rule.certain)}:\n"
        yield from _bullets(signature(rule.certain))
    yield "\nExpects:\n"
    yield from _bullets(map(expectation, rule.expects))
    if rule.contradicts:
        yield "\nContradicted by:\n"
        yield from _bullets(map(contradiction, rule.contradicts))
    if rule.symptoms:
        yield "\nIts symptoms, and then no causes of their own:\n"
        yield from _bullets(map(symptom, rule.symptoms))
    yield f"\nCulprit: {culprit(rule)}"
    if rule.victims:
        yield f"\nVictims: by `{'`, `'.join(rule.victims)}`"


def _bullets(lines: Iterable[str]) -> Iterator[str]:
    return (f"- {line}" for line in lines)


def held(certain: Certain) -> str:
    """For how long the signature must hold."""
    if certain.of == 1:
        return "at once"
    return f"in {certain.need} of {certain.of} seconds"


def signature(certain: Certain) -> Iterator[str]:
    """Its conditions, one line each."""
    for condition in certain.conditions:
        yield _condition(condition)
    if certain.any:
        yield "any of: " + "; ".join(map(_condition, certain.any))
    for condition in certain.unless:
        yield f"unless {_condition(condition)}"


def _condition(item: Condition) -> str:
    whole = " / CPUs" if item.per else f" / `{item.ratio_to}`" if item.ratio_to else ""
    parts = [
        f"≥ {_amount(item.above)}" if item.above > float("-inf") else "",
        f"≤ {_amount(item.below)}" if item.below < float("inf") else "",
        f"≥ {item.times:g} times the past" if item.times else "",
    ]
    return f"{_metric(item)}{whole} {', '.join(filter(None, parts))}".rstrip()


def expectation(item: Expectation) -> str:
    """One piece of evidence for it with its weight and reason."""
    optional = ", where there is one" if item.optional else ""
    return f"{_evidence(item)} (weight {item.weight:g}{optional}){_reason(item)}"


def contradiction(item: Expectation) -> str:
    """One piece of evidence against it; the strongest counts, whatever its weight."""
    return _evidence(item) + _reason(item)


def _evidence(item: Expectation) -> str:
    whole = f" / `{item.ratio_to}`" if item.ratio_to else ""
    if item.above is None and item.below is None:
        least = f", at least {_amount(item.at_least)}" if item.at_least is not None else ""
        said = f"{item.direction}{least}"
    else:
        limits = ((item.above, "≥"), (item.below, "≤"))
        said = ", ".join(f"{sign} {_amount(value)}" for value, sign in limits if value is not None)
    return f"{_metric(item)}{whole} {said}"


def symptom(item: Symptom) -> str:
    return f"`{item.metric}`{_reason(item)}"


def _reason(item: Expectation | Symptom) -> str:
    return f": {item.why}" if item.why else ""


def culprit(rule: Rule) -> str:
    """How the subject at fault is found."""
    if rule.subjects is None:
        return "by the usual metrics of the subsystem"
    if not rule.subjects:
        return "nobody: no process is at fault"
    which = "who lost most of" if rule.subjects_fell else "who grew most in"
    return f"{which} `{'`, `'.join(rule.subjects)}`"


def _metric(item: Condition | Expectation) -> str:
    instance = f"{{{item.instance}}}" if item.instance else ""
    feature = f" ({item.feature})" if item.feature else ""
    return f"`{item.metric}{instance}`{feature}"


def _amount(value: float) -> str:
    return f"{value:,.0f}" if 1000 <= abs(value) < 1e15 and value == round(value) else f"{value:g}"
