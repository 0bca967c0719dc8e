"""Public surface for plugins: what a site's own metrics and sources import.

A plugin that provides metrics needs ``Metric`` and its enumerations.  A plugin that provides
sources implements ``Source``, or builds one from ``TokenSource`` (one text file), ``NumberFiles``
(many files of one number each) and ``Joined`` (several sources as one).  ``Platform`` and
``Count`` describe the performance counters of a CPU model.

Names outside this module are internal and may change without notice.  ``docs/extending.md``
describes how to write a plugin.
"""

from reveal_collector.kernel_interfaces.errors import LayoutChanged, ParseError, Unsupported
from reveal_collector.readers.background import BackgroundSource
from reveal_collector.readers.joined import Joined, NumberFiles
from reveal_collector.readers.source import Roots, Source
from reveal_collector.readers.textfile import UNFIT, Layout, TokenSource, channel, is_number, rows
from reveal_collector.sources.pmu.platform import Count, Platform
from reveal_contract.bounds import Bounds
from reveal_contract.channels import Channel
from reveal_contract.metric import Capacity, Harm, Kind, Lane, Metric, Role, Scope, Subsystem

__all__ = [
    "UNFIT",
    "BackgroundSource",
    "Bounds",
    "Capacity",
    "Channel",
    "Count",
    "Harm",
    "Joined",
    "Kind",
    "Lane",
    "Layout",
    "LayoutChanged",
    "Metric",
    "NumberFiles",
    "ParseError",
    "Platform",
    "Role",
    "Roots",
    "Scope",
    "Source",
    "Subsystem",
    "TokenSource",
    "Unsupported",
    "channel",
    "is_number",
    "rows",
]
