"""What a start does not load: heavy libraries wait until something needs them."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from tests.support.command_line import clean_environment

HEAVY = (
    "numpy",
    "wordllama",
    "onnxruntime",
    "tokenizers",
    "weasyprint",
    "PIL",
    "fontTools",
    "ziamath",
    "sqlite_vec",
    "ollama",
    "httpx",
    "pygments",
    "rich",
    "ruamel.yaml",
    "fastmcp",
    "mcp",
    "uvicorn",
    "asyncio",
)


def loaded_after(code: str, cwd: Path) -> set[str]:
    """The modules that a fresh interpreter has after some code."""
    script = f"import json, sys\n{code}\nprint(json.dumps(sorted(sys.modules)))"
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=cwd, capture_output=True, env=clean_environment(), check=True, timeout=50
    )
    return set(json.loads(done.stdout))


@pytest.mark.parametrize(
    "code",
    [
        "import local_vector_search_mcp.cli.main",
        "from local_vector_search_mcp.cli.options import Given; Given().config()",
        "import local_vector_search_mcp.app",
        (
            "from local_vector_search_mcp.cli.options import Given\n"
            "from local_vector_search_mcp.app import open_app\n"
            "app = open_app(Given().config(), for_server=True)\n"
            "app.close()"
        ),
    ],
    ids=["command line", "configuration", "app", "opened app"],
)
def test_start__loads_nothing_heavy(code: str, tmp_path: Path) -> None:
    """Up to the moment at which the protocol library is imported, none of these is."""
    assert not loaded_after(code, tmp_path) & set(HEAVY)
