"""Tables recorded by other tools: ingest and scoring."""
