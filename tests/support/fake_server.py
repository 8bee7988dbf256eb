"""``python -m tests.support.fake_server ROOT …``: the real server layer over an app of fixed answers."""

import argparse
import logging
import os
import sys
from pathlib import Path
from typing import Any, cast

from tests.support.fake_app import FakeApp


def main() -> None:
    """Serve until the input ends or the process is told to end."""
    parser = argparse.ArgumentParser()
    parser.add_argument("root", type=Path)
    parser.add_argument("--scope", default="full")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int)
    parser.add_argument("--allowed-host", action="append", default=[])
    parser.add_argument("--connect")
    given = parser.parse_args()
    logging.basicConfig(stream=sys.stderr, level=logging.INFO)
    token = os.environ.get("TEST_TOKEN")
    if given.connect:
        from local_vector_search_mcp.server.relay import relay

        relay(given.connect, token=token, root=given.root, scope=given.scope)
    http = None if given.port is None else {"host": given.host, "port": given.port, "hosts": given.allowed_host}
    app = cast(Any, FakeApp(given.root, scope=given.scope, http=http))
    if http is not None:
        from local_vector_search_mcp.server.http import serve_http

        serve_http(app, token=token)
    from local_vector_search_mcp.server.build import serve_stdio

    serve_stdio(app)


if __name__ == "__main__":
    main()
