"""Use cases: they arrange the pure core and the I/O at its ends, and return frozen results."""
