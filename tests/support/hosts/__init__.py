"""Made-up hosts as file trees: ``tree`` writes, pieces fill, ``whole`` composes."""
