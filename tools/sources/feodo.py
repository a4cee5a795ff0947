"""Feodo Tracker: command servers of botnets (JSON, no key, CC0). Often a handful of old rows, or none.

https://feodotracker.abuse.ch/blocklist/
"""

from datetime import date, datetime
from ipaddress import IPv4Address
from typing import Any, NamedTuple

from tools.shared.numbers import number, within
from tools.shared.optional import optional
from tools.shared.text import NAME, clean, clean_or_none
from tools.shared.times import from_iso
from tools.sources.hosts import ABUSECH
from toolserver.errors import SourceChanged
from toolserver.upstream.source import Get, Keys, Licence, Source

LICENCE = Licence("yes", "Feodo Tracker (abuse.ch)", "https://feodotracker.abuse.ch/about/")


class CommandServer(NamedTuple):
    """A live dangerous address: never contacted, shown only defanged."""

    ip: IPv4Address
    port: int
    status: str
    malware: str
    first_seen_at: datetime
    last_online: date | None
    country: str | None
    network: str | None


def request(query: None, keys: Keys) -> Get:
    return Get("https://feodotracker.abuse.ch/downloads/ipblocklist.json")


def parse(body: Any, query: None) -> tuple[CommandServer, ...]:
    """Every row."""
    if not isinstance(body, list):
        raise SourceChanged("not a list")
    return tuple(_server(row) for row in body)


def _server(row: dict[str, Any]) -> CommandServer:
    return CommandServer(
        ip=IPv4Address(row["ip_address"]),
        port=int(within(number(row["port"]), 1, 65535)),
        status=clean(row["status"], 20),
        malware=clean(row["malware"], NAME),
        first_seen_at=from_iso(row["first_seen"].removesuffix(" UTC")),
        last_online=optional(date.fromisoformat, row.get("last_online")),
        country=clean_or_none(row.get("country"), 60),
        network=clean_or_none(row.get("as_name"), NAME),
    )


def newest(servers: tuple[CommandServer, ...]) -> datetime | None:
    return max((server.first_seen_at for server in servers), default=None)


COMMAND_SERVERS = Source(
    "FeodoTracker.c2_servers",
    request,
    parse,
    licence=LICENCE,
    hosts=ABUSECH,
    fresh_s=3600,
    keep_s=604800,
    timeout_s=10,
    conditional=True,
    newest=newest,
    least=0,
    untrusted=True,
)
