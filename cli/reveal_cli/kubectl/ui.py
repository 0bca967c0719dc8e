"""``kubectl reveal ui``: the findings of a cluster in a browser of this machine."""

from __future__ import annotations

import argparse

from reveal_cli.errors import DONE, CliError
from reveal_cli.interrupt import Interrupt
from reveal_cli.jobs import affected_job
from reveal_cli.kubectl import flags
from reveal_cli.kubectl.cluster import Cluster, connect
from reveal_cli.kubectl.evidence import page_of
from reveal_cli.kubectl.pod_samples import samples_of
from reveal_cli.ui.source import ListedFinding, Listing


def add(verbs: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare the verb and its flags."""
    parser = verbs.add_parser(
        "ui",
        help="show the findings of the cluster in a browser",
        description="Serves the findings on 127.0.0.1 with the rights of your kubeconfig, for a"
        " browser of this machine: nodes by their health, findings with filters, jobs, and a page"
        " with the samples that were kept of each finding. The printed address has a token. Ctrl-C"
        " ends it.",
    )
    parser.add_argument(
        "--port", metavar="PORT", type=int, default=0, help="the port (default: any free one)"
    )
    flags.add_reveal_namespace(parser)
    flags.add_common(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace, interrupt: Interrupt) -> int:
    """Serve until the user interrupts."""
    from reveal_cli.ui.serving import serve  # noqa: PLC0415 - heavy

    cluster = connect(arguments)
    with interrupt.raising():
        cluster.open_reports()  # the sentence on missing rights is for the terminal
    serve(ClusterFindings(cluster, arguments.reveal_namespace), arguments.port, interrupt)
    return DONE


class ClusterFindings:
    """The reports of a cluster as a source of findings."""

    def __init__(self, cluster: Cluster, namespace: str) -> None:
        self.title = cluster.requests.server
        self._cluster, self._namespace = cluster, namespace

    def listing(self) -> Listing:
        """Return the findings of all reports."""
        listed = self._cluster.reports()
        findings = [
            ListedFinding(item.name, item.finding, affected_job(item.finding), item.name)
            for item in listed.reports
        ]
        left_out = listed.unreadable
        warnings = [f"{left_out} reports are of another version of Reveal"] if left_out else []
        return Listing(findings, (), warnings)

    def page(self, key: str) -> str:
        """Return the page of a report, from the samples that an analyzer keeps."""
        item = self._cluster.report(key)
        if item.report.identity.kind.value != "Anomaly":
            raise CliError(f"report {item.name} is about the configuration: it has no samples")
        return page_of(samples_of(self._cluster.requests, item, self._namespace), item)
