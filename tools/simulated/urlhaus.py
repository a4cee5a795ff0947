"""Simulate URLhaus on the wire: a commented CSV export, newest first, and the API for keys."""

from datetime import UTC, datetime
from functools import lru_cache
from typing import NamedTuple

from toolserver.world.model import Ask, Reply, World, serves

SLOT_S = 300.0
KEPT_S = 7 * 86400.0  # longer than the part of the export that is read
TAGS = ["32-bit,elf,mips,Mozi", "exe,stealer", "ClearFake", "None", "doc,macro"]
COLUMNS = "id,dateadded,url,url_status,last_online,threat,tags,urlhaus_link,reporter"
HEAD = """################################################################
# abuse.ch URLhaus Database Dump (CSV - recent URLs only)      #
# Last updated: {updated} (UTC)                      #
#                                                              #
# Terms Of Use: https://urlhaus.abuse.ch/api/                  #
# For questions please contact urlhaus [at] abuse.ch           #
################################################################
#
# {columns}
"""


class SimUrl(NamedTuple):
    id: int
    at: float
    url: str
    status: str
    tags: str


def urls(world: World, since: float) -> list[SimUrl]:
    """Return one URL every five minutes, newest first, only on addresses and names reserved for documentation."""
    slots = world.slots("urlhaus", since=since, slot_s=SLOT_S, rate=1 / SLOT_S)
    return [_url(world, index, at) for index, at in slots][::-1]


def _url(world: World, index: int, at: float) -> SimUrl:
    last, port = int(world.between("urlhaus.ip", index, 1, 255)), int(world.between("urlhaus.port", index, 1024, 65535))
    hosts = [f"192.0.2.{last}:{port}", f"198.51.100.{last}", f"files{last}.malware.example"]
    host, tags = world.pick("urlhaus.host", index, hosts), world.pick("urlhaus.tags", index, TAGS)
    status = world.pick("urlhaus.status", index, ["online", "online", "offline"])
    return SimUrl(3_000_000 + index % 1_000_000, at, f"http://{host}/bin.sh?id={index}&copy=1", status, tags)


FORMS = {
    "auth": Reply.text('{"error": "Unauthorized"}', 401, "application/json"),
    "error200": Reply.json({"query_status": "no_results"}),
}


@serves("URLhaus.recent_urls", "urlhaus.abuse.ch", "/downloads/csv_recent/")
def export(world: World, ask: Ask) -> Reply:
    return _csv(world, urls(world, world.now - KEPT_S), COLUMNS.split(","))


@export.form("empty")
def nothing_recent(world: World, ask: Ask) -> Reply:
    return _csv(world, [], COLUMNS.split(","))


@export.form("drift")
def other_columns(world: World, ask: Ask) -> Reply:
    """Return columns in another order, and one more."""
    columns = [*reversed(COLUMNS.split(",")), "sha256"]
    return _csv(world, urls(world, world.now - KEPT_S), columns)


@serves("URLhaus.recent_urls", "urlhaus-api.abuse.ch", "/v1/urls/recent/limit/{limit}/", forms=FORMS)
def api(world: World, ask: Ask) -> Reply:
    if not ask.key_ok(ask.headers.get("auth-key")):
        return FORMS["auth"]
    listed = urls(world, world.now - 86400)[: int(ask.parts["limit"])]
    return Reply.json({"query_status": "ok", "urls": [_entry(url) for url in listed]})


def _csv(world: World, listed: list[SimUrl], columns: list[str]) -> Reply:
    head = HEAD.format(updated=_time(world.now), columns=",".join(columns))
    rows = [_line(url, tuple(columns)) for url in listed]
    return Reply.text((head + "\n".join(rows) + "\n").replace("\n", "\r\n"), content_type="text/plain")


@lru_cache(maxsize=1 << 13)
def _line(url: SimUrl, columns: tuple[str, ...]) -> str:
    """Return a line of the export. It is cached: a week has two thousand, and the next export repeats nearly all."""
    row = _row(url)
    return ",".join(f'"{row.get(name, "")}"' for name in columns)


def _row(url: SimUrl) -> dict[str, str]:
    return {
        "id": f"{url.id}",
        "dateadded": _time(url.at),
        "url": url.url,
        "url_status": url.status,
        "last_online": _time(url.at) if url.status == "online" else "",
        "threat": "malware_download",
        "tags": url.tags,
        "urlhaus_link": f"https://urlhaus.abuse.ch/url/{url.id}/",
        "reporter": "sim",
    }


def _entry(url: SimUrl) -> dict[str, object]:
    return {
        "id": f"{url.id}",
        "urlhaus_reference": f"https://urlhaus.abuse.ch/url/{url.id}/",
        "url": url.url,
        "url_status": url.status,
        "host": url.url.split("/")[2].split(":")[0],
        "date_added": f"{_time(url.at)} UTC",
        "threat": "malware_download",
        "blacklists": {"spamhaus_dbl": "not listed", "surbl": "not listed"},
        "reporter": "sim",
        "larted": "true",
        "tags": None if url.tags == "None" else url.tags.split(","),
    }


def _time(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M:%S")
