"""Window features: one table of definitions, computed for all channels in vectorized numpy."""
