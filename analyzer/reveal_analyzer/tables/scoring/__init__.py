"""Scores of tables in the modes offline, online and paper."""
