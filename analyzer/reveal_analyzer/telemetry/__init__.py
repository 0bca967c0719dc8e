"""How the watching itself goes: which nodes are heard, which are learned, what they go without."""
