"""Simulate InternetDB on the wire: a fixed table for well-known addresses, invented records for half of the rest."""

from ipaddress import AddressValueError, IPv4Address
from typing import Any

from toolserver.world.model import Ask, Reply, World, serves

KNOWN: dict[str, dict[str, Any]] = {
    "1.1.1.1": {
        "cpes": ["cpe:/a:cloudflare:cloudflare"],
        "hostnames": ["one.one.one.one"],
        "ports": [53, 80, 443, 2082, 2083, 2087, 8880],
    },
    "8.8.8.8": {"hostnames": ["dns.google"], "ports": [53, 443]},
    "9.9.9.9": {"hostnames": ["dns9.quad9.net"], "ports": [53, 443]},
    "208.67.222.222": {"hostnames": ["dns.opendns.com"], "ports": [53, 443]},
    "140.82.114.4": {"hostnames": ["lb-140-82-114-4-iad.github.com"], "ports": [22, 80, 443]},
    "151.101.1.69": {"ports": [80, 443], "tags": ["cdn"]},
    "1.0.0.1": {"hostnames": ["one.one.one.one"], "ports": [53, 80, 443]},
    "8.8.4.4": {"hostnames": ["dns.google"], "ports": [53, 443]},
    "149.112.112.112": {"hostnames": ["dns.quad9.net"], "ports": [53, 443]},
    "208.67.220.220": {"hostnames": ["dns.opendns.com"], "ports": [53, 443]},
    "140.82.121.4": {"hostnames": ["lb-140-82-121-4-fra.github.com"], "ports": [22, 80, 443]},
    "151.101.65.140": {"ports": [80, 443], "tags": ["cdn"]},
    "94.140.14.14": {"hostnames": ["dns.adguard-dns.com"], "ports": [53, 443, 853]},
    "76.76.2.0": {"hostnames": ["p0.freedns.controld.com"], "ports": [53, 443]},
    "64.6.64.6": {"ports": [53]},
    "77.88.8.8": {"hostnames": ["dns.yandex.ru"], "ports": [53, 443]},
    "185.199.108.153": {"hostnames": ["cdn-185-199-108-153.github.com"], "ports": [80, 443], "tags": ["cdn"]},
    "104.16.132.229": {"ports": [80, 443, 2082, 8080], "tags": ["cdn"]},
    "185.228.168.9": {"hostnames": ["security-filter-dns.cleanbrowsing.org"], "ports": [53, 443]},
    "74.82.42.42": {"hostnames": ["ordns.he.net"], "ports": [53, 443]},
    "84.200.69.80": {"hostnames": ["resolver1.dns.watch"], "ports": [53]},
    "198.41.0.4": {"hostnames": ["a.root-servers.net"], "ports": [53]},
    "193.0.14.129": {"hostnames": ["k.root-servers.net"], "ports": [53]},
    "199.7.83.42": {"hostnames": ["l.root-servers.net"], "ports": [53]},
}


def _record(fields: dict[str, Any], ip: str) -> dict[str, Any]:
    empty: dict[str, Any] = {key: [] for key in ("cpes", "hostnames", "ports", "tags", "vulns")}
    return dict(sorted((empty | fields | {"ip": ip}).items()))


FORMS = {
    "empty": Reply.json({"detail": "No information available"}, 404),
    "limited": Reply.json({"detail": "Rate limit exceeded"}, 429, headers={"Retry-After": "60"}),
    # the record of another address than requested
    "error200": Reply.json(_record({"ports": [1]}, "192.0.2.1")),
}


@serves("InternetDB.host", "internetdb.shodan.io", "/{ip}", forms=FORMS)
def host(world: World, ask: Ask) -> Reply:
    ip = ask.parts["ip"]
    try:
        IPv4Address(ip)
    except AddressValueError:
        return Reply.json({"detail": [{"loc": ["path", "ip"], "msg": "value is not a valid IPv4 address"}]}, 422)
    exposure = record(world, ip)
    return Reply.json(exposure) if exposure else FORMS["empty"]


@host.form("drift")
def more_members(world: World, ask: Ask) -> Reply:
    """Return members in another order, and one more."""
    exposure = record(world, ask.parts["ip"])
    return Reply.json({"last_seen": None} | dict(reversed(exposure.items()))) if exposure else FORMS["empty"]


def record(world: World, ip: str) -> dict[str, Any] | None:
    """Return the record of an address; None if there is none."""
    if ip in KNOWN:
        return _record(KNOWN[ip], ip)
    if world.u("internetdb.indexed", ip) < 0.5:
        return None
    fields = {
        "cpes": ["cpe:/a:openbsd:openssh:9.9"],
        "hostnames": [f"host-{ip.replace('.', '-')}.example"],
        "ports": sorted({22, world.pick("internetdb.port", ip, [80, 443, 8080, 3389])}),
        "tags": world.pick("internetdb.tags", ip, [[], ["cloud"], ["self-signed"]]),
        "vulns": [f"CVE-2099-{int(world.between('internetdb.cve', ip, 10000, 99999))}"],
    }
    return _record(fields, ip)
