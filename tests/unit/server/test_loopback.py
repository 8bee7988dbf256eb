"""Loopback: which addresses are this machine alone."""

import pytest

from local_vector_search_mcp.errors import ConfigError
from local_vector_search_mcp.server.loopback import is_loopback, is_wildcard
from local_vector_search_mcp.server.relay import check_url


@pytest.mark.parametrize(
    ("host", "expected"),
    [
        ("127.0.0.1", True),
        ("127.9.9.9", True),
        ("localhost", True),
        ("LOCALHOST", True),
        ("::1", True),
        ("[::1]", True),
        ("0.0.0.0", False),
        ("::", False),
        ("192.168.1.2", False),
        ("example.com", False),
        ("localhost.example.com", False),
        ("127.0.0.1.example.com", False),
        ("", False),
    ],
)
def test_loopback__hosts(host: str, expected: bool) -> None:
    """Only loopback addresses and ``localhost`` itself are this machine."""
    assert is_loopback(host) is expected


@pytest.mark.parametrize(("host", "expected"), [("0.0.0.0", True), ("::", True), ("[::]", True), ("127.0.0.1", False)])
def test_loopback__wildcards(host: str, expected: bool) -> None:
    """An unspecified address means all of them."""
    assert is_wildcard(host) is expected


@pytest.mark.parametrize("url", ["http://127.0.0.1:8001/mcp", "http://[::1]:8001/mcp", "https://kb.example.com/mcp"])
def test_loopback__urls_taken(url: str) -> None:
    """Plain HTTP stays on this machine; TLS may leave it."""
    check_url(url)


@pytest.mark.parametrize(
    "url",
    [
        "http://example.com/mcp",
        "http://10.0.0.1/mcp",
        "ws://127.0.0.1/",
        "127.0.0.1:8001",
        "http:///mcp",
        "http://127.0.0.1:99999/",
        "http://user@127.0.0.1/",
        "",
    ],
)
def test_loopback__urls_refused(url: str) -> None:
    """Anything else is refused, with the option's name."""
    with pytest.raises(ConfigError, match="--connect"):
        check_url(url)
