"""One module per command for people."""
