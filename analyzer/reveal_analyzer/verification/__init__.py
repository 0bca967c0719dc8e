"""Whether a change of a node helped the jobs that its findings slow."""
