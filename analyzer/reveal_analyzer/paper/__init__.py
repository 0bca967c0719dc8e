"""Paper mode: the decisions of arXiv 2510.26008 on window features."""
