"""Fetch one image over HTTPS from a public address, and from nowhere else.

A name is resolved once per hop, every address it resolves to must be public, and the connection goes to an address
that was checked, with the name in SNI and certificate. Proxies, credentials and cookies are never used, and no
message or log holds more of a URL than its host, because signed URLs are secrets.
"""

import contextlib
import http.client
import ipaddress
import socket
import ssl
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias
from urllib.parse import SplitResult, quote, urljoin, urlsplit

from local_vector_search_mcp.errors import (
    DownloadFailed,
    DownloadRefused,
    KnowledgeBaseError,
    TooLarge,
    UnsupportedFormat,
)

HTTPS_PORT: Final = 443
_CHUNK: Final = 64 * 1024
_REDIRECTS: Final = frozenset({301, 302, 303, 307, 308})
_MAX_URL: Final = 8192
_IMAGE_TYPES: Final = frozenset({"image/png", "image/jpeg", "image/jpg", "image/webp", "image/gif"})
# Object stores often do not know better.
_OPAQUE_TYPES: Final = frozenset({"", "application/octet-stream", "binary/octet-stream"})

# Written out rather than taken from ``ipaddress.is_global``, whose answer depends on the Python version.
_FORBIDDEN_V4: Final = tuple(
    ipaddress.IPv4Network(block)
    for block in (
        "0.0.0.0/8",  # this network
        "10.0.0.0/8",
        "100.64.0.0/10",  # carrier-grade NAT
        "127.0.0.0/8",
        "169.254.0.0/16",  # link-local, cloud metadata
        "172.16.0.0/12",
        "192.0.0.0/24",
        "192.0.2.0/24",
        "192.31.196.0/24",
        "192.52.193.0/24",
        "192.88.99.0/24",  # 6to4 relays
        "192.168.0.0/16",
        "192.175.48.0/24",
        "198.18.0.0/15",
        "198.51.100.0/24",
        "203.0.113.0/24",
        "224.0.0.0/4",  # multicast
        "240.0.0.0/4",  # reserved, broadcast
    )
)
# Only global unicast is allowed at all, which leaves out loopback, mapped, NAT64, unique local, link-local, multicast.
_GLOBAL_V6: Final = ipaddress.IPv6Network("2000::/3")
_FORBIDDEN_V6: Final = tuple(
    ipaddress.IPv6Network(block)
    for block in (
        "2001::/23",  # Teredo, ORCHID, benchmarking and other protocol assignments
        "2001:db8::/32",
        "2002::/16",  # 6to4
        "2620:4f:8000::/48",
        "3fff::/20",
    )
)

Address: TypeAlias = ipaddress.IPv4Address | ipaddress.IPv6Address
Resolver: TypeAlias = Callable[[str], Sequence[str]]
Connector: TypeAlias = Callable[[str, int, float], socket.socket]


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchLimits:
    """How much one download may take.

    ``total_seconds`` is for everything, names and redirects included.
    """

    max_bytes: int
    total_seconds: float = 30.0
    max_redirects: int = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchedFile:
    """The bytes of a download and the media type that the server gave, empty where it gave none."""

    data: bytes
    content_type: str


def resolve_name(host: str) -> Sequence[str]:
    """Every address that the system's resolver gives for a name."""
    found = socket.getaddrinfo(host, HTTPS_PORT, type=socket.SOCK_STREAM, proto=socket.IPPROTO_TCP)
    return tuple(dict.fromkeys(str(entry[4][0]) for entry in found))


def connect(address: str, port: int, timeout_s: float) -> socket.socket:
    """A TCP connection to an address literal."""
    return socket.create_connection((address, port), timeout=timeout_s)


class ImageFetcher:
    """Fetches images by HTTPS URL.

    Args:
        limits: Size, time and redirects.
        resolver: Name to address literals; replaced in tests.
        connector: Address, port and timeout to a connected socket; replaced in tests.
        tls: The TLS configuration; the system's trust store by default.
    """

    def __init__(
        self,
        limits: FetchLimits,
        *,
        resolver: Resolver = resolve_name,
        connector: Connector = connect,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self._limits = limits
        self._resolver = resolver
        self._connector = connector
        self._tls = tls

    def fetch(self, url: str) -> FetchedFile:
        """Download one image.

        Raises:
            DownloadRefused: A forbidden scheme, port, address or redirect, credentials in the URL.
            DownloadFailed: Anything else that keeps the bytes from arriving in time.
            UnsupportedFormat: The server says that it is no image.
            TooLarge: More bytes than the limit.
        """
        deadline = time.monotonic() + self._limits.total_seconds
        current = url
        for _ in range(self._limits.max_redirects + 1):
            target = check_url(current)
            answer = self._request(target, deadline)
            if isinstance(answer, FetchedFile):
                return answer
            current = urljoin(target.geturl(), answer)
        raise DownloadRefused(
            f"The download was redirected more than {self._limits.max_redirects} times; give the final URL."
        )

    def _request(self, target: SplitResult, deadline: float) -> FetchedFile | str:
        """One hop: the file, or where it redirects to."""
        host = _host(target)
        addresses = self._public_addresses(host, deadline)
        connection = _CheckedConnection(
            host, addresses, self._connector, self._tls or ssl.create_default_context(), deadline
        )
        # Timeouts of single reads would let a server that drips one byte at a time go on for ever.
        watchdog = threading.Timer(max(0.0, deadline - time.monotonic()), connection.abort)
        watchdog.daemon = True
        watchdog.start()
        try:
            connection.request("GET", _request_target(target), headers=_HEADERS)
            with connection.getresponse() as response:
                answer = self._answer(host, response)
            if time.monotonic() >= deadline:
                # A connection that was cut looks like the end of a body without a length.
                raise _too_late(host)
            return answer
        except KnowledgeBaseError as error:
            if isinstance(error, DownloadFailed) and time.monotonic() >= deadline:
                raise _too_late(host) from error
            raise
        except (OSError, http.client.HTTPException, ValueError) as error:
            raise _failure(host, error, deadline) from error
        finally:
            watchdog.cancel()
            connection.close()

    def _answer(self, host: str, response: http.client.HTTPResponse) -> FetchedFile | str:
        if response.status in _REDIRECTS:
            location = response.headers.get("Location")
            if not location:
                raise DownloadFailed(f"{host} answered with a redirect to nowhere; give another URL.")
            return location
        if response.status != 200:
            raise DownloadFailed(f"{host} answered with status {response.status}; the URL may have expired.")
        if response.headers.get("Content-Encoding", "identity").lower() != "identity":
            raise DownloadFailed(f"{host} sent an encoding that was not asked for.")
        content_type = response.headers.get("Content-Type", "").partition(";")[0].strip().lower()
        if content_type not in _IMAGE_TYPES and content_type not in _OPAQUE_TYPES:
            raise UnsupportedFormat(f"{host} sent {content_type[:80]!r}; PNG, JPEG, WebP and GIF images are taken.")
        return FetchedFile(data=self._body(host, response), content_type=content_type)

    def _body(self, host: str, response: http.client.HTTPResponse) -> bytes:
        limit = self._limits.max_bytes
        if response.length is not None and response.length > limit:
            raise TooLarge(f"The image has {response.length} bytes; at most {limit} are taken.")
        parts: list[bytes] = []
        size = 0
        while part := response.read1(_CHUNK):
            size += len(part)
            if size > limit:
                raise TooLarge(f"The image has more than {limit} bytes, which is the most that is taken.")
            parts.append(part)
        if response.length:
            raise DownloadFailed(f"{host} closed the connection before the image was complete; try again.")
        return b"".join(parts)

    def _public_addresses(self, host: str, deadline: float) -> tuple[Address, ...]:
        found = self._resolve(host, deadline)
        addresses: list[Address] = []
        for literal in found:
            address = _public(literal)
            if address is None:
                raise DownloadRefused(f"{host} resolves to an address that is not public; only public hosts are read.")
            addresses.append(address)
        if not addresses:
            raise DownloadFailed(f"{host} has no address.")
        return tuple(addresses)

    def _resolve(self, host: str, deadline: float) -> Sequence[str]:
        # The system's resolver takes no timeout, so it is left behind in a thread of its own.
        outcome: list[Sequence[str] | OSError | UnicodeError] = []

        def work() -> None:
            try:
                outcome.append(self._resolver(host))
            except (OSError, UnicodeError) as error:
                outcome.append(error)

        thread = threading.Thread(target=work, name="image-fetch-resolve", daemon=True)
        thread.start()
        thread.join(max(0.0, deadline - time.monotonic()))
        if not outcome:
            raise DownloadFailed(f"The name {host} could not be resolved in time.")
        answer = outcome[0]
        if isinstance(answer, OSError | UnicodeError):
            raise DownloadFailed(f"The name {host} could not be resolved; check the URL.") from answer
        return answer


_HEADERS: Final = {
    "User-Agent": "local-vector-search-mcp",
    "Accept": "image/png, image/jpeg, image/webp, image/gif",
    "Accept-Encoding": "identity",
    "Connection": "close",
}


class _CheckedConnection(http.client.HTTPSConnection):
    """An HTTPS connection to one of the addresses that were checked, whatever the name resolves to by now."""

    def __init__(
        self, host: str, addresses: Sequence[Address], connector: Connector, tls: ssl.SSLContext, deadline: float
    ) -> None:
        super().__init__(host, HTTPS_PORT, context=tls)
        self._addresses = addresses
        self._connector = connector
        self._tls = tls
        self._deadline = deadline
        self._wire: socket.socket | None = None

    def connect(self) -> None:
        """Connect to the first checked address that answers, and prove that it is the named host."""
        failure: OSError = OSError("no address")
        for address in self._addresses:
            try:
                raw = self._connector(str(address), HTTPS_PORT, self._remaining())
            except OSError as error:
                failure = error
                continue
            try:
                raw.settimeout(self._remaining())
                self.sock = self._wire = self._tls.wrap_socket(raw, server_hostname=self.host)
            except BaseException:
                raw.close()
                raise
            return
        raise failure

    def abort(self) -> None:
        """End a blocked read or write from another thread."""
        # Not ``self.sock``: the library hands that over to the response.
        if self._wire is not None:
            with contextlib.suppress(OSError):
                self._wire.shutdown(socket.SHUT_RDWR)

    def _remaining(self) -> float:
        return max(0.001, self._deadline - time.monotonic())


def check_url(url: str) -> SplitResult:
    """A URL that may be asked for: HTTPS, default port, a host, no credentials.

    Raises:
        DownloadRefused: It is anything else.
    """
    if len(url) > _MAX_URL or any(character <= " " or character in "\\\x7f" for character in url):
        raise DownloadRefused("The download URL is too long or holds characters that no URL has.")
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        raise DownloadRefused("The download URL is malformed.") from error
    if parts.scheme.lower() != "https":
        raise DownloadRefused(f"Only https URLs are downloaded, not {parts.scheme[:20]!r}.")
    if parts.username is not None or parts.password is not None:
        raise DownloadRefused("The download URL holds a user name or password; give one without.")
    if port not in (None, HTTPS_PORT):
        raise DownloadRefused(f"Only the default HTTPS port is used, not {port}.")
    if not parts.hostname:
        raise DownloadRefused("The download URL names no host.")
    if "%" in parts.hostname:
        raise DownloadRefused("The host of the download URL has a zone or is percent-encoded; give a plain name.")
    return parts._replace(fragment="")


def _host(parts: SplitResult) -> str:
    host = parts.hostname or ""
    try:
        return host.encode("ascii").decode() if ":" in host else host.encode("idna").decode()
    except UnicodeError as error:
        raise DownloadRefused("The host name of the download URL is malformed.") from error


def _request_target(parts: SplitResult) -> str:
    path = quote(parts.path or "/", safe="/%:@!$&'()*+,;=~-._")
    query = quote(parts.query, safe="/%:@!$&'()*+,;=~-._?[]")
    return f"{path}?{query}" if query else path


def _public(literal: str) -> Address | None:
    """The address if it is a public unicast one."""
    try:
        address = ipaddress.ip_address(literal)
    except ValueError:
        return None
    if isinstance(address, ipaddress.IPv4Address):
        return None if any(address in block for block in _FORBIDDEN_V4) else address
    if address.scope_id is not None or address not in _GLOBAL_V6:
        return None
    return None if any(address in block for block in _FORBIDDEN_V6) else address


def _too_late(host: str) -> DownloadFailed:
    return DownloadFailed(f"The download from {host} was not done in time; try again.")


def _failure(host: str, error: BaseException, deadline: float) -> DownloadFailed:
    if time.monotonic() >= deadline:
        return _too_late(host)
    if isinstance(error, ssl.SSLCertVerificationError):
        return DownloadFailed(f"The certificate of {host} could not be verified.")
    if isinstance(error, http.client.IncompleteRead):
        return DownloadFailed(f"{host} closed the connection before the image was complete; try again.")
    return DownloadFailed(f"The download from {host} failed ({type(error).__name__}); try again or give another URL.")
