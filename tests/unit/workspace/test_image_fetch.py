"""Fetching an image: only HTTPS, only public addresses, only the address that was checked."""

import gzip
import logging
import socket
import ssl
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import pytest
from tests.support.pictures import picture
from tests.support.tls_server import TlsServer, tls_server

from local_vector_search_mcp.errors import (
    DownloadFailed,
    DownloadRefused,
    KnowledgeBaseError,
    TooLarge,
    UnsupportedFormat,
)
from local_vector_search_mcp.workspace.image_fetch import FetchLimits, ImageFetcher, check_url

HOST, OTHER = "images.example.org", "cdn.example.org"
PUBLIC, SECOND = "93.184.216.34", "2606:2800:220:1:248:1893:25c8:1946"
PNG = picture("PNG")


@pytest.fixture
def server(tmp_path: Path) -> Iterator[TlsServer]:
    with tls_server(tmp_path, HOST, OTHER) as running:
        yield running


class Net:
    """A resolver and a connector: every name has given addresses, and every address leads to the loopback server."""

    def __init__(
        self, port: int, addresses: dict[str, list[str]] | None = None, dead: frozenset[str] = frozenset()
    ) -> None:
        self.addresses = addresses or {HOST: [PUBLIC], OTHER: [PUBLIC]}
        self.resolved: list[str] = []
        self.connected: list[tuple[str, int]] = []
        self._port = port
        self._dead = dead

    def resolve(self, host: str) -> list[str]:
        self.resolved.append(host)
        if host not in self.addresses:
            raise socket.gaierror(socket.EAI_NONAME, "no such name")
        return self.addresses[host]

    def connect(self, address: str, port: int, timeout_s: float) -> socket.socket:
        self.connected.append((address, port))
        if address in self._dead:
            raise ConnectionRefusedError("refused")
        return socket.create_connection(("127.0.0.1", self._port), timeout=timeout_s)


def send(body: bytes = PNG, *, status: int = 200, length: int | None = None, **headers: str) -> Callable[..., None]:
    def answer(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(status)
        handler.send_header("Content-Length", str(len(body) if length is None else length))
        for name, value in {"Content_Type": "image/png", **headers}.items():
            handler.send_header(name.replace("_", "-"), value)
        handler.end_headers()
        handler.wfile.write(body)
        if length is not None:
            handler.close_connection = True

    return answer


def redirect(target: str, status: int = 302) -> Callable[..., None]:
    return send(b"", status=status, Location=target)


def fetcher(net: Net, trust: ssl.SSLContext, *, max_bytes: int = 100_000, seconds: float = 10.0) -> ImageFetcher:
    limits = FetchLimits(max_bytes=max_bytes, total_seconds=seconds)
    return ImageFetcher(limits, resolver=net.resolve, connector=net.connect, tls=trust)


def refuse(server: TlsServer, net: Net, url: str, error: type[KnowledgeBaseError], **limits: float) -> str:
    with pytest.raises(error) as caught:
        fetcher(net, server.trust, **limits).fetch(url)  # type: ignore[arg-type]
    return caught.value.message


def test_fetch__the_file_comes_from_the_address_that_was_checked(server: TlsServer) -> None:
    """One resolution, one connection to its answer, the name in SNI, and no credentials on the way."""
    server.answers["/a b.png"] = server.answers["/a%20b.png"] = send()
    net = Net(server.port)
    file = fetcher(net, server.trust).fetch(f"https://{HOST}/a%20b.png?X-Signature=s%2Fecret#part")
    assert (file.data, file.content_type) == (PNG, "image/png")
    assert (net.resolved, net.connected) == ([HOST], [(PUBLIC, 443)])
    assert server.names == [HOST]
    ((path, headers),) = server.requests
    assert path == "/a%20b.png?X-Signature=s%2Fecret"
    assert headers["host"] == HOST
    assert headers["accept-encoding"] == "identity"
    assert not headers.keys() & {"authorization", "cookie", "referer", "proxy-authorization"}


def test_fetch__proxies_of_the_environment_are_not_used(server: TlsServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """A proxy would connect to whatever it resolves."""
    for name in ("HTTPS_PROXY", "https_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    server.answers["/a.png"] = send()
    assert fetcher(Net(server.port), server.trust).fetch(f"https://{HOST}/a.png").data == PNG


def test_fetch__the_next_address_is_tried(server: TlsServer) -> None:
    """All addresses were checked, so any of them may answer."""
    server.answers["/a.png"] = send()
    net = Net(server.port, {HOST: [SECOND, PUBLIC]}, dead=frozenset({SECOND}))
    assert fetcher(net, server.trust).fetch(f"https://{HOST}/a.png").data == PNG
    assert net.connected == [(SECOND, 443), (PUBLIC, 443)]


@pytest.mark.parametrize(
    "url",
    [
        "http://images.example.org/a.png",
        "ftp://images.example.org/a.png",
        "file:///etc/passwd",
        "data:image/png;base64,AAAA",
        "HTTPS://user:secret@images.example.org/a.png",
        "https://user@images.example.org/a.png",
        "https://images.example.org:8443/a.png",
        "https://images.example.org:80/a.png",
        "https://images.example.org:99999/a.png",
        "https:///a.png",
        "https://",
        "//images.example.org/a.png",
        "images.example.org/a.png",
        "https://images.example.org/a b.png",
        "https://images.example.org\\@evil.example.org/a.png",
        "https://images.example.org/a\r\nHost: evil",
        "https://[fe80::1%25eth0]/a.png",
        "https://[::1/a.png",
        "https://images.example.org/" + "a" * 9000,
        "",
    ],
)
def test_check_url__anything_but_plain_https_is_refused(url: str) -> None:
    """Scheme, port, credentials and malformed URLs are refused before anything is resolved."""
    with pytest.raises(DownloadRefused) as caught:
        check_url(url)
    assert "secret" not in caught.value.message


def test_check_url__the_default_port_may_be_written() -> None:
    """443 is what HTTPS means."""
    assert check_url("https://images.example.org:443/a.png").port == 443


@pytest.mark.parametrize(
    "address",
    [
        "127.0.0.1",
        "127.9.9.9",
        "0.0.0.0",
        "10.1.2.3",
        "172.16.0.1",
        "172.31.255.255",
        "192.168.1.1",
        "169.254.169.254",
        "100.64.0.1",
        "100.127.255.255",
        "192.0.0.8",
        "192.0.2.1",
        "192.88.99.1",
        "198.18.0.1",
        "198.51.100.7",
        "203.0.113.7",
        "224.0.0.1",
        "239.255.255.255",
        "240.0.0.1",
        "255.255.255.255",
        "::",
        "::1",
        "::7f00:1",
        "::ffff:127.0.0.1",
        "::ffff:8.8.8.8",
        "64:ff9b::7f00:1",
        "64:ff9b::808:808",
        "64:ff9b:1::1",
        "2002:7f00:1::",
        "2002:808:808::1",
        "2001::1",
        "2001:db8::1",
        "2001:10::1",
        "3fff::1",
        "5f00::1",
        "fc00::1",
        "fd12:3456::1",
        "fe80::1",
        "fe80::1%eth0",
        "fec0::1",
        "ff02::1",
        "100::1",
        "not an address",
    ],
)
def test_fetch__addresses_that_are_not_public_are_refused(server: TlsServer, address: str) -> None:
    """One such address among public ones is enough, and nothing is connected."""
    net = Net(server.port, {HOST: [PUBLIC, address]})
    message = refuse(server, net, f"https://{HOST}/a.png?token=secret", DownloadRefused)
    assert net.connected == []
    assert "secret" not in message


@pytest.mark.parametrize("literal", ["127.0.0.1", "[::1]", "[::ffff:10.0.0.1]", "169.254.169.254"])
def test_fetch__address_literals_are_checked_alike(server: TlsServer, literal: str) -> None:
    """An address in the URL is resolved to itself."""
    host = literal.strip("[]")
    net = Net(server.port, {host: [host]})
    refuse(server, net, f"https://{literal}/a.png", DownloadRefused)
    assert net.connected == []


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_fetch__redirects_are_followed(server: TlsServer, status: int) -> None:
    """Also relative ones, and to another host."""
    server.answers["/1"] = redirect("/2", status)
    server.answers["/2"] = redirect(f"https://{OTHER}/3", status)
    server.answers["/3"] = send()
    net = Net(server.port)
    assert fetcher(net, server.trust).fetch(f"https://{HOST}/1").data == PNG
    assert net.resolved == [HOST, HOST, OTHER]


def test_fetch__five_redirects_and_no_more(server: TlsServer) -> None:
    """The sixth is refused; so is a loop."""
    for number in range(7):
        server.answers[f"/{number}"] = redirect(f"/{number + 1}")
    server.answers["/7"] = send()
    assert fetcher(Net(server.port), server.trust).fetch(f"https://{HOST}/2").data == PNG
    refuse(server, Net(server.port), f"https://{HOST}/1", DownloadRefused)
    server.answers["/loop"] = redirect("/loop")
    refuse(server, Net(server.port), f"https://{HOST}/loop", DownloadRefused)


@pytest.mark.parametrize(
    "target",
    [
        "http://images.example.org/a.png",
        "https://inner.example.org/a.png",
        "https://127.0.0.1/a.png",
        "https://images.example.org:8443/a.png",
        "https://user:pw@images.example.org/a.png",
        "file:///etc/passwd",
    ],
)
def test_fetch__redirects_are_checked_like_the_first_url(server: TlsServer, target: str) -> None:
    """A public host cannot send us inside."""
    server.answers["/1"] = redirect(target)
    net = Net(server.port, {HOST: [PUBLIC], "inner.example.org": ["10.0.0.8"], "127.0.0.1": ["127.0.0.1"]})
    refuse(server, net, f"https://{HOST}/1", DownloadRefused)
    assert net.connected == [(PUBLIC, 443)]


def test_fetch__each_hop_is_resolved_anew(server: TlsServer) -> None:
    """A name that changes its address between hops is checked again."""
    server.answers["/1"] = redirect("/2")
    net = Net(server.port)

    def rebinding(host: str) -> list[str]:
        answer = net.resolve(host)
        net.addresses[HOST] = ["127.0.0.1"]
        return answer

    fetching = ImageFetcher(FetchLimits(max_bytes=1000), resolver=rebinding, connector=net.connect, tls=server.trust)
    with pytest.raises(DownloadRefused):
        fetching.fetch(f"https://{HOST}/1")


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (send(status=404), DownloadFailed),
        (send(status=403), DownloadFailed),
        (send(status=206), DownloadFailed),
        (send(b"", status=302), DownloadFailed),
        (send(Content_Type="text/html"), UnsupportedFormat),
        (send(Content_Type="image/svg+xml"), UnsupportedFormat),
        (send(gzip.compress(PNG), Content_Encoding="gzip"), DownloadFailed),
        (send(PNG[:50], length=len(PNG)), DownloadFailed),
        (send(b"\0" * 100_001), TooLarge),
        (send(PNG, length=10**12), TooLarge),
    ],
)
def test_fetch__bad_answers_are_refused(
    server: TlsServer, answer: Callable[..., None], error: type[KnowledgeBaseError]
) -> None:
    """Each failure has its code, and none of them names the URL."""
    server.answers["/a.png"] = answer
    message = refuse(server, Net(server.port), f"https://{HOST}/a.png?sig=hidden", error)
    assert "hidden" not in message


@pytest.mark.parametrize("content_type", ["image/jpeg; charset=x", "application/octet-stream", ""])
def test_fetch__stores_that_do_not_know_the_type_are_believed(server: TlsServer, content_type: str) -> None:
    """The content decides later."""
    server.answers["/a.png"] = send(Content_Type=content_type)
    assert fetcher(Net(server.port), server.trust).fetch(f"https://{HOST}/a.png").data == PNG


def test_fetch__a_stream_without_a_length_is_cut_off_at_the_limit(server: TlsServer) -> None:
    """Bytes are counted as they come."""

    def endless(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(200)
        handler.send_header("Content-Type", "image/png")
        handler.send_header("Connection", "close")
        handler.end_headers()
        for _ in range(1000):
            handler.wfile.write(b"\0" * 65536)

    server.answers["/a.png"] = endless
    refuse(server, Net(server.port), f"https://{HOST}/a.png", TooLarge)


@pytest.mark.parametrize("where", ["headers", "body"])
def test_fetch__a_server_that_drips_is_left_in_time(server: TlsServer, where: str) -> None:
    """The time is for the whole download, not for each read."""
    done: list[bool] = []

    def drip(handler: BaseHTTPRequestHandler) -> None:
        head = b"HTTP/1.1 200 OK\r\nContent-Type: image/png\r\nContent-Length: 5000\r\n\r\n"
        text = head if where == "headers" else b"\0" * 500
        if where == "body":
            handler.wfile.write(head)
        try:
            for number in range(len(text)):
                handler.wfile.write(text[number : number + 1])
                handler.connection.settimeout(0.05)
                try:
                    handler.connection.recv(1)
                except TimeoutError:
                    continue
                break
        finally:
            done.append(True)

    server.answers["/a.png"] = drip
    assert "in time" in refuse(server, Net(server.port), f"https://{HOST}/a.png", DownloadFailed, seconds=0.6)


def test_fetch__a_wrong_certificate_is_refused(server: TlsServer) -> None:
    """The name in the URL has to be the one in the certificate, whatever the address."""
    server.answers["/a.png"] = send()
    net = Net(server.port, {"evil.example.org": [PUBLIC]})
    assert "certificate" in refuse(server, net, "https://evil.example.org/a.png", DownloadFailed)
    with pytest.raises(DownloadFailed):
        ImageFetcher(FetchLimits(max_bytes=1000), resolver=Net(server.port).resolve, connector=net.connect).fetch(
            f"https://{HOST}/a.png"
        )


@pytest.mark.parametrize("addresses", [{}, {HOST: []}])
def test_fetch__a_name_without_address_fails(server: TlsServer, addresses: dict[str, list[str]]) -> None:
    """That is no refusal, only a wrong URL."""
    net = Net(server.port, {"other": [], **addresses})
    refuse(server, net, f"https://{HOST}/a.png", DownloadFailed)


def test_fetch__a_dead_host_fails(server: TlsServer) -> None:
    """No address answers."""
    net = Net(server.port, dead=frozenset({PUBLIC}))
    refuse(server, net, f"https://{HOST}/a.png", DownloadFailed)


def test_fetch__nothing_of_a_signed_url_is_logged(server: TlsServer, caplog: pytest.LogCaptureFixture) -> None:
    """Neither a good nor a bad download leaves its signature anywhere."""
    caplog.set_level(logging.DEBUG)
    server.answers["/a.png"] = send()
    fetcher(Net(server.port), server.trust).fetch(f"https://{HOST}/a.png?sig=hidden")
    refuse(server, Net(server.port), f"https://{HOST}/none.png?sig=hidden", DownloadFailed)
    assert "hidden" not in caplog.text
