"""What was changed, and how to take it back."""
