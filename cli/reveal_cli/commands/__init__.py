"""One module for each command: ``add`` declares its flags, ``run`` executes it.

A new command is a new module here and an entry in ``COMMANDS``.
"""

from reveal_cli.commands import (
    analyze,
    catalog,
    demo,
    doctor,
    evidence,
    explain,
    export,
    hypotheses,
    record,
    report,
    scan,
    select,
    top,
    trace,
    ui,
)

# in the order of ``reveal --help``
COMMANDS = (
    scan, top, demo, record, analyze, explain, report, ui, evidence, trace, export, catalog,
    hypotheses, select, doctor,
)  # fmt: skip
