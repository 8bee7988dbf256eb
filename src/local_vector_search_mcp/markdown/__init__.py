"""Markdown bytes to elements: exact, pure, and free of I/O."""
