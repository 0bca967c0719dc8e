"""The ``reveal`` command: one file a sub-command."""
