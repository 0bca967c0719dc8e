"""Findings as objects of the Kubernetes API: AnomalyReports, Events, node conditions.

change ─▶ ``ledger`` (what is wanted, what the API has) ─▶ ``delivery`` ─▶ ``api``
             │ ``telling``: which Events                       │ ``calls``: errors by kind
             │ ``overflow``: the summary of too many           └ only ``api`` has the client
             └ ``spool``: what waits survives a restart
``loop`` has the thread; the analysis never waits for the API.
"""
