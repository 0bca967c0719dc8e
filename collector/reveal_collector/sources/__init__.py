"""One file a source; ``registry`` lists them."""
