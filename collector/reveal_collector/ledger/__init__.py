"""The lost-time ledger: where the time of each subject's threads went, and who took it."""
