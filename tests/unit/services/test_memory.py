"""Giving memory back never fails, on any system."""

import sys

import pytest

from local_vector_search_mcp.services.memory import give_back_memory


@pytest.mark.parametrize("platform", ["linux", "darwin", "win32"])
def test_give_back_memory__everywhere(monkeypatch: pytest.MonkeyPatch, platform: str) -> None:
    """Where the system has nothing to trim, nothing is done."""
    monkeypatch.setattr(sys, "platform", platform if platform != "linux" or sys.platform == "linux" else "darwin")
    give_back_memory()
