"""What the tests of all components share: builders, hosts, fakes at the edges, waiting."""
