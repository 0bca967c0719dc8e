"""Made-up nodes with known faults, and what an analyzer reports of them."""
