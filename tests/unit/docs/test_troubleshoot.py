"""docs/how-to/troubleshoot.md explains every reason of a condition."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Callable
from textwrap import dedent
from types import ModuleType
from typing import Any

from reveal_analyzer.evidence.recorder import REASON as EVIDENCE_NOT_KEPT
from reveal_analyzer.node_history.keeper import REASON as HISTORY_NOT_KEPT
from reveal_analyzer.sinks.kube.node_conditions import REASON as CONDITIONS_LIMITED
from reveal_analyzer.sinks.otlp.sink import REASON as OTLP_NOT_SENT
from reveal_analyzer.stream.node_admission import TOO_MANY_NODES, UNKNOWN_NODES
from reveal_analyzer.stream.node_clocks import REASON as NODE_CLOCK_WRONG
from reveal_analyzer.stream.origin import UNPROVEN_SLICES
from reveal_analyzer.stream.tolerant_client import REASON as KEYS_OF_ANOTHER_TYPE
from reveal_analyzer.telemetry.degraded import REDUCED, degradations
from reveal_operator import conditions, inspection, owned_objects, pod_failures, spec
from support.profile_factory import ROOT

PAGE = (ROOT / "docs/how-to/troubleshoot.md").read_text()
_WORD = re.compile(r"[A-Z][a-z]+(?:[A-Z][a-z]+)*")
_ROW = re.compile(rf"^\| `({_WORD.pattern})`", re.MULTILINE)
# kube-controller-manager's, which the operator passes on
_OF_DEPLOYMENTS = {"FailedCreate", "ProgressDeadlineExceeded"}
_PERF = '{"missing": [{"source": "perf", "reason": "needs CAP_PERFMON", "remedy": ""}]}'


def words(part: ModuleType | Callable[..., Any]) -> set[str]:
    """Return the string literals of a module or function that are a single word, as reasons are."""
    nodes = ast.walk(ast.parse(dedent(inspect.getsource(part))))
    texts = [node.value for node in nodes if isinstance(node, ast.Constant)]
    return {text for text in texts if isinstance(text, str) and _WORD.fullmatch(text)}


def reasons() -> set[str]:
    types = {
        conditions.READY, conditions.SPEC_ACCEPTED, conditions.COLLECTORS_AVAILABLE,
        conditions.ANALYZER_AVAILABLE, conditions.STREAM_REACHABLE,
        conditions.NODES_REPORTING, conditions.DEGRADED, conditions.LEARNING,
        conditions.FINDINGS_RECUR,
    }  # fmt: skip
    statuses = {conditions.TRUE, conditions.FALSE, conditions.UNKNOWN}
    [perf] = degradations("node", _PERF.encode())
    return (
        words(conditions) - types - statuses
        | {*pod_failures._WAITING.values(), *pod_failures._WORDS}
        | {spec.INVALID, spec.REDIS_MISSING, spec.NOT_PERMITTED, owned_objects.NAME_TAKEN}
        | words(owned_objects.refusal_of)
        | words(inspection.WorkloadInspector._failure_of)
        | {REDUCED, perf.reason, EVIDENCE_NOT_KEPT, HISTORY_NOT_KEPT, OTLP_NOT_SENT}
        | {CONDITIONS_LIMITED, TOO_MANY_NODES, UNKNOWN_NODES, KEYS_OF_ANOTHER_TYPE}
        | {UNPROVEN_SLICES, NODE_CLOCK_WRONG}
        | _OF_DEPLOYMENTS
    )


def test_exactly_the_existing_reasons_are_explained() -> None:
    assert set(_ROW.findall(PAGE)) == reasons()
