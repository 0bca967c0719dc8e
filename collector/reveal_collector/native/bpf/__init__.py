"""BPF programs of the lost-time ledger, and what compiles and loads them."""
