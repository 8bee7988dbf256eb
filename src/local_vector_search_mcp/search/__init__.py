"""Index rows to ranked hits."""
