"""``python -m tests.support.fake_server ROOT [SCOPE]``: the real server layer over an app of fixed answers."""

import logging
import sys
from pathlib import Path
from typing import Any, cast

from tests.support.fake_app import FakeApp

from local_vector_search_mcp.server.build import STDIO_RESULT_LIMIT, build_server
from local_vector_search_mcp.server.stdio import serve


def main() -> None:
    """Serve until the input ends."""
    logging.basicConfig(stream=sys.stderr, level=logging.INFO)
    scope = sys.argv[2] if len(sys.argv) > 2 else "full"
    serve(build_server(cast(Any, FakeApp(Path(sys.argv[1]), scope=scope)), result_limit=STDIO_RESULT_LIMIT))


if __name__ == "__main__":
    main()
