"""Documents and operations to new bytes: planned, applied, parsed again and proven."""
