"""Give memory back to the system after work that took much of it."""

import gc
import sys


def give_back_memory() -> None:
    """Collect garbage and, with glibc, return freed memory; elsewhere the allocator does so by itself."""
    gc.collect()
    if not sys.platform.startswith("linux"):
        return
    # Loaded here because a start does not need it.
    import ctypes

    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)
