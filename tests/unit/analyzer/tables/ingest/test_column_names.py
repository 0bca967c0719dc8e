"""Names of columns, and of those of several devices."""

from __future__ import annotations

from reveal_analyzer.tables.ingest.column_names import labelled, unique_names


def test_a_repeated_name_gets_a_number() -> None:
    assert unique_names(["user", "idle", "user"]) == ("user", "idle", "user#2")


def test_a_single_metric_is_named_after_what_it_is_about() -> None:
    assert labelled(["value"], "gpu0") == ["gpu0"]
    assert labelled(["busy", "used"], "gpu0") == ["busy{gpu0}", "used{gpu0}"]
    assert labelled(["value"], "") == ["value"]
