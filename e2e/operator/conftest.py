"""Fixtures of the operator's end-to-end tests."""

from support.operator_harness import operator_stage, stage

__all__ = ["operator_stage", "stage"]
