"""GET /api/exposure-lookup."""

from datetime import datetime
from ipaddress import AddressValueError, IPv4Address
from typing import Annotated, Literal

from pydantic import AfterValidator, Field
from pydantic_core import PydanticCustomError

from tools.sources.internetdb import ASKED_HOST, LISTED_HOST, HostExposure
from toolserver import Payload, SourceDown, Timestamp, ToolContext, is_public, tool, via

CURATED = {
    "1.1.1.1": "Cloudflare DNS",
    "8.8.8.8": "Google DNS",
    "9.9.9.9": "Quad9 DNS",
    "208.67.222.222": "OpenDNS",
    "140.82.114.4": "GitHub",
    "151.101.1.69": "Fastly",
    "1.0.0.1": "Cloudflare DNS",
    "8.8.4.4": "Google DNS",
    "149.112.112.112": "Quad9 DNS",
    "208.67.220.220": "OpenDNS",
    "140.82.121.4": "GitHub",
    "151.101.65.140": "Fastly",
    "94.140.14.14": "AdGuard DNS",
    "76.76.2.0": "Control D",
    "64.6.64.6": "UltraDNS",
    "77.88.8.8": "Yandex DNS",
    "185.199.108.153": "GitHub Pages",
    "104.16.132.229": "Cloudflare",
    "185.228.168.9": "CleanBrowsing",
    "74.82.42.42": "Hurricane Electric DNS",
    "84.200.69.80": "DNS.WATCH",
    "198.41.0.4": "a.root-servers.net",
    "193.0.14.129": "k.root-servers.net",
    "199.7.83.42": "l.root-servers.net",
}
"""Well-known resolvers and hosts, in the order in which they come round: so many an hour."""
SHOWN, HOUR_S = 6, 3600
RETRY_S = 15


def public_ipv4(text: str) -> str:
    """Return the address if it is four plain decimal numbers and routed on the Internet."""
    try:
        address = IPv4Address(text)
    except AddressValueError:
        raise PydanticCustomError("invalid_or_private_ip", "not an IPv4 address in dotted decimal form") from None
    if not is_public(address):
        raise PydanticCustomError("invalid_or_private_ip", "not a public IPv4 address")
    return text


class Exposure(Payload):
    ip: str = Field(description="Public IPv4 address")
    name: str | None = Field(description="Whose address it is, of the 24 well-known ones; null: any other")
    indexed: bool = Field(description="False: the scan has nothing on it")
    ports: list[int] = Field(max_length=50, description="Open ports that the scan saw")
    cves: list[str] = Field(
        max_length=50, description="Vulnerabilities (CVE ids) derived from product versions, not verified"
    )
    hostnames: list[str] = Field(max_length=20, description="Host names that the scan found for it")
    tags: list[str] = Field(max_length=20, description="Shodan's labels, such as cloud or vpn")
    cpes: list[str] = Field(max_length=30, description="Products that the scan recognised, as CPE names")
    checked_at: Timestamp = Field(description="When Shodan's record was read; the scan itself is about weekly")


class Exposures(Payload):
    mode: Literal["single", "curated"] = Field(
        description="single: the address that was asked for; curated: six of the well-known ones"
    )
    results: list[Exposure] = Field(description="One record for each address that could be read")


@tool(
    path="/api/exposure-lookup",
    title="Exposure lookup",
    search_hint="open ports on IP address host scan CVE shodan given",
    ttl_s=3600,
    sla_s=6 * 3600,
    sources=(ASKED_HOST, LISTED_HOST),
    distinct=(("ip",), 20, 3600),
    warm=tuple((LISTED_HOST, address) for address in CURATED),
)
async def exposure_lookup(
    ctx: ToolContext,
    ip: Annotated[
        str | None,
        AfterValidator(lambda address: None if address is None else public_ipv4(address)),
        Field(description="A public IPv4 address", examples=["1.1.1.1"], json_schema_extra={"format": "ipv4"}),
    ] = None,
) -> Exposures:
    """Open ports, known vulnerabilities (CVE), host names, tags and products (CPE) that a weekly Internet-wide scan saw
    on a public IPv4 address. Without `ip`, six of 24 well-known resolvers and hosts, others every hour. Nothing is
    scanned by asking.

    Shape: `results` holds one address, or those of the six that could be read. `indexed` false with empty lists is
    an answer: nothing was seen there. CVEs are derived from product versions, not verified.
    Source: Shodan InternetDB; while there are requests, the service rereads the 24, one every ten minutes.
    Errors: anything but a public IPv4 address is `invalid_arguments` with type `invalid_or_private_ip`.
    """
    if ip is not None:
        host = await ctx.read(ASKED_HOST, ip)
        return Exposures(mode="single", results=[cut_lists(host, _checked_at(ctx, "data"))])
    hosts_by_address: dict[str, HostExposure | None] = {}
    for address in addresses_of_the_hour(ctx.now):
        stored = await ctx.kept(LISTED_HOST, address, section=f"data.{address}")
        hosts_by_address[address] = stored
    ctx.shorten(HOUR_S - ctx.now.timestamp() % HOUR_S)
    missing = [address for address, host in hosts_by_address.items() if host is None]
    if missing:  # the service has not read them all yet: request one, and try again soon
        read = await ctx.section(f"data.{missing[0]}", via(LISTED_HOST, missing[0]))
        hosts_by_address[missing[0]] = read
        ctx.shorten(RETRY_S)
    hosts = [host for host in hosts_by_address.values() if host is not None]
    if not hosts:
        raise SourceDown("none of the curated addresses could be read")
    if len(hosts) < len(hosts_by_address):
        left_out = ", ".join(address for address, host in hosts_by_address.items() if host is None)
        ctx.warn("data", "partial", f"Not read so far: {left_out}.", LISTED_HOST.name)
    return Exposures(mode="curated", results=[cut_lists(host, _checked_at(ctx, f"data.{host.ip}")) for host in hosts])


def addresses_of_the_hour(now: datetime) -> list[str]:
    """Return the next six of the curated addresses. The list starts again when it is exhausted."""
    listed = list(CURATED)
    first = int(now.timestamp() // HOUR_S) * SHOWN % len(listed)
    return listed[first : first + SHOWN]


def cut_lists(host: HostExposure, checked_at: datetime) -> Exposure:
    """Return an address with as much of each list as an answer holds."""
    return Exposure(
        ip=host.ip,
        name=CURATED.get(host.ip),
        indexed=host.indexed,
        ports=list(host.ports[:50]),
        cves=list(host.cves[:50]),
        hostnames=list(host.hostnames[:20]),
        tags=list(host.tags[:20]),
        cpes=list(host.cpes[:30]),
        checked_at=checked_at,
    )


def _checked_at(ctx: ToolContext, section: str) -> datetime:
    return next(note.fetched_at for note in ctx.notes.used if note.section == section and note.fetched_at)
