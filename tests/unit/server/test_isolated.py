"""FastMCP, imported in isolation: what the import changes for a while is as before afterwards."""

import gc
import os
import subprocess
import sys
from pathlib import Path

from pydantic import BaseModel
from tests.support.stdio_client import child_environment

from local_vector_search_mcp.server import isolated


def test_isolated__models_of_others_are_built_at_once() -> None:
    """Message types are built when first used; other models are not touched by that."""
    assert isolated.FastMCP is not None
    assert "defer_build" not in BaseModel.model_config

    class Later(BaseModel):
        value: int

    assert Later.__pydantic_complete__


def test_isolated__garbage_is_collected_again() -> None:
    """The collector pauses for the import alone."""
    assert gc.isenabled()


def test_isolated__no_setting_reaches_the_library(tmp_path: Path) -> None:
    """Neither the working directory nor the environment changes a setting of FastMCP."""
    (tmp_path / ".env").write_text("FASTMCP_PORT=1\nFASTMCP_LOG_LEVEL=bogus\n", encoding="utf-8")
    script = (
        "from local_vector_search_mcp.server import isolated; import fastmcp, os; s = fastmcp.settings; "
        "print(s.port, s.log_level, s.mask_error_details, sorted(n for n in os.environ if n.startswith('FASTMCP')))"
    )
    hostile = {"FASTMCP_PORT": "2", "FASTMCP_MASK_ERROR_DETAILS": "true", "FASTMCP_LOG_LEVEL": "nonsense"}
    done = subprocess.run(
        [sys.executable, "-c", script],
        cwd=tmp_path,
        env=child_environment(hostile),
        capture_output=True,
        text=True,
        check=False,
        timeout=50,
    )
    assert done.stdout == "8000 INFO False ['FASTMCP_ENV_FILE', 'FASTMCP_LOG_ENABLED']\n", done.stderr


def test_isolated__is_the_only_door_to_the_library() -> None:
    """No other module of the package imports FastMCP by itself."""
    package = Path(isolated.__file__).resolve().parents[1]
    for path in package.rglob("*.py"):
        if path.name != "isolated.py":
            lines = path.read_text(encoding="utf-8").splitlines()
            assert not [line for line in lines if line.lstrip().startswith(("import fastmcp", "from fastmcp"))], path


def test_isolated__environment_stays_without_fastmcp() -> None:
    """What is left in the environment is what keeps the library quiet."""
    assert {name for name in os.environ if name.startswith("FASTMCP")} == {"FASTMCP_ENV_FILE", "FASTMCP_LOG_ENABLED"}
