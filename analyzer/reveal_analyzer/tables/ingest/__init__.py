"""Reading of tables from other tools, as input of ``tables.scoring``."""
