"""Window features: one definition table, computed channel by channel in vectorised numpy."""
