"""Findings as objects of the Kubernetes API: AnomalyReports, Events, node conditions.

- ``sink``: the thread; the analysis never waits for the API
- ``report_store``: which reports and Events there should be, by ``entries``, ``observation``,
  ``admission`` and ``summary``
- ``event_policy``: which Events a change is worth; ``event_texts``: what they say
- ``delivery``: writes one report and its Events by ``api``
- ``spool``: keeps pending reports on disk over a restart
- ``node_conditions``: the condition of a node
- ``profile_telemetry``: the telemetry in the status of the profile
- the status of a report is built in the contract (``kube.anomaly_report.Report.status``)
"""
