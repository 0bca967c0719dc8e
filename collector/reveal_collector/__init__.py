"""The collector: samples one host and ships one slice a second."""
