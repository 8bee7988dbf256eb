"""Configuration: what may be set, where it comes from, and what the inner packages get of it."""
