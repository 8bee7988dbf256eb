"""``python -m tests.clients.install FOLDER``: get the real clients from their npm packages into a folder.

Node 22 comes first, because npm picks older versions of the others for an older Node. Afterwards set
``LVS_CLIENT_TOOLS=FOLDER`` and run ``pytest -m clients tests/clients``.
"""

import os
import subprocess
import sys
from pathlib import Path

NODE = ("node@22",)
CLIENTS = (
    "@modelcontextprotocol/client",
    "@modelcontextprotocol/inspector@2",
    "@modelcontextprotocol/conformance@0.1",
    "conformance-next@npm:@modelcontextprotocol/conformance@0.2.0-alpha.12",
    "@anthropic-ai/claude-code",
    "@openai/codex",
)


def main() -> None:
    """Install into the folder named on the command line."""
    folder = Path(sys.argv[1]).resolve()
    folder.mkdir(parents=True, exist_ok=True)
    path = os.pathsep.join((str(folder / "node_modules" / ".bin"), os.environ["PATH"]))
    for packages in (NODE, CLIENTS):
        command = ["npm", "install", "--no-audit", "--no-fund", "--prefix", str(folder), *packages]
        subprocess.run(command, check=True, env={**os.environ, "PATH": path})


if __name__ == "__main__":
    main()
