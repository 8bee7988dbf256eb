"""Configuration: YAML, environment and command line, checked exactly."""
