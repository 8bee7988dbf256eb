"""Where third-party test data stands: one setting, one reason for skipping."""

import os
from pathlib import Path

import pytest

_DEFAULT = Path(__file__).resolve().parents[3] / "shared"


def shared_root() -> Path:
    """The folder that holds ``data/`` and ``cases/``: ``LVS_TEST_DATA``, else ``shared`` beside the checkout.

    Skips the calling test where the folder is absent.
    """
    root = Path(os.environ.get("LVS_TEST_DATA", str(_DEFAULT)))
    if not (root / "data").is_dir():
        pytest.skip("third-party test data not found; set LVS_TEST_DATA to the folder that holds data/ and cases/")
    return root
