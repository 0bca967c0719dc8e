"""Facts of a node: one module a topic, ``inventory`` puts them together, ``watch`` keeps them."""
