"""Made-up hosts as file trees: ``tree`` writes, pieces fill, ``complete_hosts`` composes."""
