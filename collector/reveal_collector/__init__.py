"""The collector: reads one host and ships one slice a second."""
