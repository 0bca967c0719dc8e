"""Facts of a node, a module for each topic; ``inventory`` combines, ``publisher`` updates them."""
