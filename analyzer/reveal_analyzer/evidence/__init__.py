"""Evidence: the samples of each finding, kept longer than the stream keeps them."""
