"""Read command servers of botnets from Feodo Tracker (JSON, no key). It often has a handful of old rows, or none.

https://feodotracker.abuse.ch/blocklist/
"""

from datetime import date, datetime
from ipaddress import IPv4Address
from typing import Any, NamedTuple

from tools.parsing.fields import NAME, clean, clean_or_none, from_iso, number, optional, within
from tools.sources.hosts import ABUSECH, HOUR, WEEK
from toolserver import Get, Licence, Proof, Source, SourceChanged, read_rows

# The page calls the data CC0, but the terms of abuse.ch are for authenticated users, and commercial use may need a paid
# subscription (read in October 2026).
LICENCE = Licence("unclear", "Feodo Tracker (abuse.ch)", "https://abuse.ch/terms-of-use/")


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


def parse(body: Any, query: None) -> tuple[CommandServer, ...]:
    """Return every row."""
    if not isinstance(body, list):
        raise SourceChanged("not a list")
    return read_rows(body, _server)


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
    Get("https://feodotracker.abuse.ch/downloads/ipblocklist.json"),
    parse,
    licence=LICENCE,
    hosts=ABUSECH,
    fresh_s=HOUR,
    ageless="a server may be listed for years; each row has its first date",
    keep_s=WEEK,
    timeout_s=10,
    conditional=True,
    newest=newest,
    least=0,
    proof=Proof.harmless("the list has the servers known today, is often empty, and is shown with four other feeds"),
    untrusted=True,
)
