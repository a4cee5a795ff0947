"""GET /api/exposure-lookup."""

from datetime import datetime
from ipaddress import AddressValueError, IPv4Address, IPv4Network
from typing import Annotated, Literal

from pydantic import AfterValidator, Field
from pydantic_core import PydanticCustomError

from tools.sources.internetdb import ASKED_HOST, LISTED_HOST, HostExposure
from toolserver.context import ToolContext, via
from toolserver.errors import SourceDown
from toolserver.payloads import Payload, Timestamp
from toolserver.registry import tool

CURATED = {
    "1.1.1.1": "Cloudflare DNS",
    "8.8.8.8": "Google DNS",
    "9.9.9.9": "Quad9 DNS",
    "208.67.222.222": "OpenDNS",
    "140.82.114.4": "GitHub",
    "151.101.1.69": "Fastly",
}
RETRY_S = 15
NOT_PUBLIC = tuple(
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


def public_ipv4(text: str) -> str:
    """The address itself, if it is four plain decimal numbers and routed on the Internet."""
    try:
        address = IPv4Address(text)
    except AddressValueError:
        raise PydanticCustomError("invalid_or_private_ip", "not an IPv4 address in dotted decimal form") from None
    if any(address in network for network in NOT_PUBLIC):
        raise PydanticCustomError("invalid_or_private_ip", "not a public IPv4 address")
    return text


class Exposure(Payload):
    ip: str
    name: str | None
    indexed: bool = Field(description="False: the scan has nothing on it")
    ports: list[int] = Field(max_length=50)
    cves: list[str] = Field(max_length=50)
    hostnames: list[str] = Field(max_length=20)
    tags: list[str] = Field(max_length=20)
    cpes: list[str] = Field(max_length=30)
    checked_at: Timestamp


class Exposures(Payload):
    mode: Literal["single", "curated"]
    results: list[Exposure]


@tool(
    path="/api/exposure-lookup",
    title="Exposure lookup",
    ttl_s=3600,
    sla_s=2 * 3600,
    sources=(ASKED_HOST, LISTED_HOST),
    distinct=("ip", 20, 3600),
    warm=tuple((LISTED_HOST, known) for known in CURATED),
)
async def exposure_lookup(
    ctx: ToolContext,
    ip: Annotated[
        str | None,
        AfterValidator(lambda given: None if given is None else public_ipv4(given)),
        Field(description="A public IPv4 address", examples=["1.1.1.1"]),
    ] = None,
) -> Exposures:
    """Open ports, known vulnerabilities (CVE), host names, tags and products (CPE) that a weekly Internet-wide scan saw
    on a public IPv4 address. Without `ip`, six well-known resolvers and hosts. Nothing is scanned by asking.

    Shape: `results` holds one address, or those of the six that could be read. `indexed` false with empty lists is
    an answer: nothing was seen there. CVEs are derived from product versions, not verified.
    Source: Shodan InternetDB; the six are read again by the service itself, one every ten minutes.
    Errors: anything but a public IPv4 address is `invalid_arguments` with type `invalid_or_private_ip`.
    """
    if ip is not None:
        found = await ctx.read(ASKED_HOST, ip)
        return Exposures(mode="single", results=[_shown(found, _checked_at(ctx, "data"))])
    at_hand: dict[str, HostExposure | None] = {}
    for known in CURATED:
        kept = await ctx.kept(LISTED_HOST, known, section=f"data.{known}")
        at_hand[known] = kept
    missing = [known for known, host in at_hand.items() if host is None]
    if missing:  # the service has not yet read them all: ask for one, and try again soon
        asked = await ctx.section(f"data.{missing[0]}", via(LISTED_HOST, missing[0]))
        at_hand[missing[0]] = asked
        ctx.shorten(RETRY_S)
    hosts = [host for host in at_hand.values() if host is not None]
    if not hosts:
        raise SourceDown("none of the curated addresses could be read")
    if len(hosts) < len(CURATED):
        left_out = ", ".join(known for known, host in at_hand.items() if host is None)
        ctx.warn("data", "partial", f"Not read so far: {left_out}.", LISTED_HOST.name)
    return Exposures(mode="curated", results=[_shown(host, _checked_at(ctx, f"data.{host.ip}")) for host in hosts])


def _shown(host: HostExposure, checked_at: datetime) -> Exposure:
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
