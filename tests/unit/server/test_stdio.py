"""Lines that are no message: the id under which they are answered."""

import pytest

from local_vector_search_mcp.server.stdio import encoded, parse_error, request_id_of


@pytest.mark.parametrize(
    ("line", "request_id"),
    [
        (b'{"id":5}', 5),
        (b'{"id":"a"}', "a"),
        (b'{"id":true}', None),
        (b'{"id":1.5}', None),
        (b'{"id":null}', None),
        (b'{"id":[1]}', None),
        (b"{}", None),
        (b"[]", None),
        (b'[{"id":1}]', None),
        (b'"id"', None),
        (b"", None),
        (b'{"id":5', None),
        (b'{"id":5,', 5),
        (b'{"jsonrpc":"2.0","id":"a\\"b","method"', 'a"b'),
        (b'{"method":"x","params":{"id":7', None),
        (b'{"method":"x","params":{"id":7,"y":{', None),
        (b'{"id":5,"params":{"id":7,', 5),
        (b'{"params":{"id":7},"id":9,"x":', None),
        (b'{"params":{"id":7,"y":\xff},"id":9,"method":"x", "jsonrpc": "2.0"}\r', 9),
        (b'{"params":{"y":\xff,"id":9}}', None),
        (b'{"id":"\xff"}', None),
        (b'{"id":"\\ud800"}', None),
        (b'{"id":"\\ud800",', None),
        (b'{"id":' + b"9" * 30 + b"}", None),
        (b'{"id":3,"params":' + b"[" * 200_000, 3),
        (b'{"id":4,"params":{"n":' + b"9" * 10_000 + b"}}", 4),
    ],
)
def test_stdio__id_of_what_is_no_request(line: bytes, request_id: str | int | None) -> None:
    """The id is told where it can be, and never guessed into something that no client sent."""
    assert request_id_of(line) == request_id
    assert b"-32700" in encoded(parse_error(line))
