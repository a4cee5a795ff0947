"""Read what a weekly scan of the Internet saw on an address from InternetDB (JSON, no key, not for commercial use).

https://internetdb.shodan.io
"""

import re
from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

from tools.parsing.fields import NAME, clean, number, within
from tools.sources.hosts import HOUR, INTERNETDB, WEEK
from toolserver import Get, Keys, Licence, Source, SourceChanged

LICENCE = Licence("non_commercial", "Shodan InternetDB", "https://internetdb.shodan.io")
NOT_INDEXED = "No information available"
_CVE = re.compile(r"CVE-\d{4}-\d{4,}")

T = TypeVar("T")


class HostExposure(NamedTuple):
    """The known facts about an address; `indexed` is False when the scan has nothing on it."""

    ip: str
    indexed: bool
    ports: tuple[int, ...] = ()
    cves: tuple[str, ...] = ()
    hostnames: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    cpes: tuple[str, ...] = ()


def request(query: str, keys: Keys) -> Get:
    return Get(f"https://internetdb.shodan.io/{query}")


def parse(body: Any, query: str) -> HostExposure:
    """Return the record of the address, or its absence (HTTP 404 with its usual sentence)."""
    if body.get("detail") == NOT_INDEXED:
        return HostExposure(query, indexed=False)
    if body["ip"] != query:
        raise SourceChanged("the record of another address")
    return HostExposure(
        query,
        indexed=True,
        ports=_each(body["ports"], lambda port: int(within(number(port), 1, 65535))),
        cves=tuple(cve for cve in _each(body["vulns"], str) if _CVE.fullmatch(cve)),
        hostnames=_each(body["hostnames"], lambda name: clean(name, NAME)),
        tags=_each(body["tags"], lambda tag: clean(tag, 40)),
        cpes=_each(body["cpes"], lambda cpe: clean(cpe, NAME)),
    )


def _each(listed: Any, read: Callable[[Any], T]) -> tuple[T, ...]:
    if not isinstance(listed, list):
        raise SourceChanged("a member is not a list")
    return tuple(read(item) for item in listed)


def exposure(*, fresh_s: float, user_input: bool) -> Source[str, HostExposure]:
    """Return a source with the shared public name; answers to callers are cached apart from those to our own list."""
    return Source(
        "InternetDB.host",
        request,
        parse,
        licence=LICENCE,
        hosts=INTERNETDB,
        fresh_s=fresh_s,
        ageless="hosts are scanned about once a week, and the answer carries no timestamp",
        keep_s=WEEK,
        timeout_s=6,
        also=frozenset({404}),
        user_input=user_input,
        untrusted=True,
        probe="1.1.1.1",
    )


ASKED_HOST = exposure(fresh_s=HOUR, user_input=True)
LISTED_HOST = exposure(fresh_s=4 * HOUR, user_input=False)
