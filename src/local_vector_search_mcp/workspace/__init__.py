"""The only package that reads or writes workspace files."""
