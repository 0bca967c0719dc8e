"""The kubectl plugin: open findings of a cluster, why a job is slow, and silences.

- ``open_findings``, ``why``, ``silence``, ``unsilence``: one verb each
- ``cluster``: requests with the rights of the user, and their errors as sentences
- ``reports``: AnomalyReports as typed values, safe to print
- ``mentions``: which reports are about a pod, a job or a node
- ``report_text``, ``report_json``: what is printed
"""
