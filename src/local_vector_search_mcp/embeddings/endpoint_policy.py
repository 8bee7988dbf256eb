"""Where text may be sent: loopback, unless the configuration allows a remote endpoint.

Every request is checked where it connects, so redirects and names that resolve differently
from one moment to the next are held to the same rule.
"""

import ipaddress
import socket
from urllib.parse import urlsplit

import httpx

from local_vector_search_mcp.errors import ConfigError


class EndpointRefusedError(Exception):
    """A request would leave this machine and may not."""


def check_endpoint(url: str, *, allow_remote: bool) -> None:
    """Refuse an endpoint that can never be permitted, without resolving names.

    Raises:
        ConfigError: Not an absolute HTTP URL, credentials in it, or an address beyond loopback.
    """
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port
    except ValueError as error:
        raise ConfigError("embedding.endpoint is not a valid URL; write it like http://localhost:11434.") from error
    if parts.scheme not in ("http", "https") or not host:
        raise ConfigError("embedding.endpoint must be an http or https URL, such as http://localhost:11434.")
    if parts.username is not None or parts.password is not None:
        raise ConfigError("embedding.endpoint must hold no user name or password; use embedding.apiKeyEnv.")
    if allow_remote:
        return
    try:
        address = ipaddress.ip_address(host.split("%", 1)[0])
    except ValueError:
        return  # A name: it is resolved, and checked, whenever a connection is made.
    if not _is_loopback(address):
        raise ConfigError(
            f"embedding.endpoint is {host}, which is beyond this machine; "
            "set embedding.allowRemoteEndpoint: true to let text leave it."
        )


class LoopbackTransport(httpx.BaseTransport):
    """An HTTP transport that connects to loopback addresses only.

    The name is resolved here and the connection goes to the address that was checked.
    """

    def __init__(self) -> None:
        self._inner = httpx.HTTPTransport(trust_env=False)

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """Send one request, or raise ``EndpointRefusedError``. Redirects come through here one by one."""
        host = request.url.host
        addresses = _loopback_addresses(host, request.url.port)
        for address in addresses[:-1]:
            try:
                return self._inner.handle_request(_sent_to(request, address))
            except httpx.ConnectError:
                continue
        return self._inner.handle_request(_sent_to(request, addresses[-1]))

    def close(self) -> None:
        """Close the connections."""
        self._inner.close()


def make_transport(*, allow_remote: bool) -> httpx.BaseTransport:
    """The transport for an endpoint: any address where that is allowed, loopback otherwise. Never a proxy."""
    return httpx.HTTPTransport(trust_env=False) if allow_remote else LoopbackTransport()


def _sent_to(request: httpx.Request, address: str) -> httpx.Request:
    return httpx.Request(
        request.method,
        request.url.copy_with(host=address),
        headers=request.headers,
        stream=request.stream,
        extensions={**request.extensions, "sni_hostname": request.url.host},
    )


def _loopback_addresses(host: str, port: int | None) -> list[str]:
    try:
        found = socket.getaddrinfo(host, port or 80, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise EndpointRefusedError(
            f"the name {host} does not resolve to an address of this machine; check embedding.endpoint, "
            "or set embedding.allowRemoteEndpoint: true to let text leave it"
        ) from error
    addresses = [ipaddress.ip_address(str(entry[4][0]).split("%", 1)[0]) for entry in found]
    refused = [address for address in addresses if not _is_loopback(address)]
    if refused or not addresses:
        raise EndpointRefusedError(
            f"{host} is beyond this machine; set embedding.allowRemoteEndpoint: true to let text leave it"
        )
    # Model servers listen on IPv4 loopback far more often than on IPv6.
    addresses.sort(key=lambda address: address.version)
    return list(dict.fromkeys(str(address) for address in addresses))


def _is_loopback(address: ipaddress.IPv4Address | ipaddress.IPv6Address) -> bool:
    if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped is not None:
        return address.ipv4_mapped.is_loopback
    return address.is_loopback
