"""Decides which IP addresses belong to the public Internet, for every address that a caller can name.

`ipaddress.is_global` is not enough. Depending on the version of Python it returns True for
multicast, for 6to4, Teredo and NAT64 addresses that lead to private ones, and for ranges that
were never assigned. Hence these separate lists.
"""

from functools import lru_cache
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address

PRIVATE_IPV4 = tuple(
    IPv4Network(network)
    for network in (
        "0.0.0.0/8",
        "10.0.0.0/8",
        "100.64.0.0/10",
        "127.0.0.0/8",
        "169.254.0.0/16",
        "172.16.0.0/12",
        "192.0.0.0/24",
        "192.0.2.0/24",
        "192.31.196.0/24",
        "192.52.193.0/24",
        "192.88.99.0/24",
        "192.168.0.0/16",
        "192.175.48.0/24",
        "198.18.0.0/15",
        "198.51.100.0/24",
        "203.0.113.0/24",
        "224.0.0.0/3",
    )
)
PUBLIC_IPV6 = IPv6Network("2000::/3")
PRIVATE_IPV6 = tuple(IPv6Network(network) for network in ("2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20"))


@lru_cache(4096)
def is_public(address: IPv4Address | IPv6Address) -> bool:
    """Return True if an address belongs to the public Internet. An IPv4-mapped IPv6 address is judged as IPv4."""
    if isinstance(address, IPv6Address):
        if address.scope_id is not None:
            return False
        if address.ipv4_mapped is not None:
            return is_public(address.ipv4_mapped)
        return address in PUBLIC_IPV6 and not any(address in network for network in PRIVATE_IPV6)
    return not any(address in network for network in PRIVATE_IPV4)


def is_loopback(address: IPv4Address | IPv6Address) -> bool:
    """Return True if an address is this machine itself, also as an IPv4-mapped IPv6 address."""
    if isinstance(address, IPv6Address) and address.ipv4_mapped is not None:
        return address.ipv4_mapped.is_loopback
    return address.is_loopback


def is_local_host(host: str) -> bool:
    """Return True if a host can only be this machine: localhost, a name below it (RFC 6761), or a loopback literal."""
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return is_loopback(ip_address(host))
    except ValueError:
        return False


def is_address(host: str) -> bool:
    """Return True if a host is an address and not a name."""
    try:
        ip_address(host)
    except ValueError:
        return False
    return True
