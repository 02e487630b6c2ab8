"""IP addresses of callers: which belong together, and which are none."""

import ipaddress
from typing import Final

UNKNOWN: Final = "unknown"  # stands for a caller without an address
_HOST_BITS: Final = 64  # of an IPv6 address, which one caller can choose freely


def ip_address(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    """The address that a text is, or None; an IPv4 address in an IPv6 one is taken out."""
    try:
        address = ipaddress.ip_address(text.partition("%")[0])  # a zone may be any text
    except ValueError:
        return None
    if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped is not None:
        return address.ipv4_mapped
    return address


def is_this_machine(host: str) -> bool:
    """Whether only this machine reaches a server that listens there."""
    address = ip_address(host)
    return host == "localhost" if address is None else address.is_loopback


def caller_network(text: str | None) -> str:
    """What stands for one caller: its IPv4 address, or the /64 network of its IPv6 address."""
    address = None if text is None else ip_address(text)
    if address is None:
        return UNKNOWN
    if isinstance(address, ipaddress.IPv4Address):
        return str(address)
    network = int(address) >> _HOST_BITS << _HOST_BITS
    return f"{ipaddress.IPv6Address(network)}/{128 - _HOST_BITS}"
