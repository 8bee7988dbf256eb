"""Which addresses are this machine alone."""

import ipaddress


def is_loopback(host: str) -> bool:
    """Whether an address or name is this machine alone; names other than ``localhost`` are not looked up."""
    name = host.strip("[]")
    if name.casefold() == "localhost":
        return True
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False


def is_wildcard(host: str) -> bool:
    """Whether an address means every address of this machine."""
    try:
        return ipaddress.ip_address(host.strip("[]")).is_unspecified
    except ValueError:
        return False
