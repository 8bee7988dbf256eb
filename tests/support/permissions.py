"""Whether file modes mean anything to this process: to the superuser they mostly do not."""

import os
from pathlib import Path

import pytest


def need_enforced_modes(folder: Path) -> None:
    """Skip the test where a file without any permission can be read all the same."""
    probe = folder / "probe"
    probe.write_text("x")
    probe.chmod(0)
    try:
        readable = os.access(probe, os.R_OK)
    finally:
        probe.chmod(0o600)
        probe.unlink()
    if readable:
        pytest.skip("this process may read whatever the modes say")
