"""Tables recorded by other tools: reading, scoring, and findings."""
