"""Flags that several verbs have, before or after the verb."""

from __future__ import annotations

import argparse

JSON = "json"
_NAMESPACE = "reveal-system"
DEFAULTS = {"context": None, "kubeconfig": None, "output": "text"}


def add_common(parser: argparse.ArgumentParser) -> None:
    """Declare the flags of all verbs; those that are not given keep what the main parser has."""
    parser.add_argument(
        "--context", metavar="NAME", default=argparse.SUPPRESS,
        help="the context of the kubeconfig (default: the current one)",
    )  # fmt: skip
    parser.add_argument(
        "--kubeconfig", metavar="FILE", default=argparse.SUPPRESS,
        help="the kubeconfig file (default: $KUBECONFIG, else ~/.kube/config)",
    )  # fmt: skip


def add_output(parser: argparse.ArgumentParser) -> None:
    """Declare the format, likewise."""
    parser.add_argument(
        "-o", "--output", choices=("text", JSON), default=argparse.SUPPRESS,
        help="text (default) or JSON",
    )  # fmt: skip


def add_reveal_namespace(parser: argparse.ArgumentParser) -> None:
    """Declare where the analyzers are."""
    parser.add_argument(
        "--reveal-namespace", metavar="NAME", default=_NAMESPACE,
        help=f"the namespace of the analyzers (default: {_NAMESPACE})",
    )  # fmt: skip


def add_profile_of_node(parser: argparse.ArgumentParser) -> None:
    """Declare which profile a node is looked for in."""
    parser.add_argument(
        "--profile", metavar="NAME", default="",
        help="the RevealProfile of the node (default: the first that has it)",
    )  # fmt: skip
