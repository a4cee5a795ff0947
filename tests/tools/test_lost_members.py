"""Each member of each source's body is removed: the body is refused, or the answer says that the member is missing.

The bodies are those of the simulated world, in which every source that has a probe answers.
"""

import json
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from functools import cache
from typing import Any, NamedTuple
from urllib.parse import unquote, urlencode, urlsplit

from tests.requirements import proves
from tests.size import EVERYTHING, sized
from toolserver.registry.registry import Registry
from toolserver.upstream.decode import read_body
from toolserver.upstream.drift import BodyTree, read_body_tree
from toolserver.upstream.member_watch import MemberWatch
from toolserver.upstream.source import Connect, Get, Post, Request, Source, SourceError
from toolserver.world.model import ROUTES, Ask, World
from toolserver.world.providers import load_providers

AT = datetime(2027, 1, 15, 8, tzinfo=UTC)
OFTEN = 60  # answers before the one that lacks a member

MAPS = {
    "CurrencyApi.usd_rates": "by currency",
    "Dydx.perpetual_markets": "by market",
    "Frankfurter.usd_timeseries": "by currency",
    "Kraken.asset_pairs": "by pair",
    "Kraken.ticker_all": "by pair",
}
"""Sources whose bodies name their rows: what is missing there is a row."""

OTHERWISE = {
    "CoinGecko.markets price_change_percentage_24h_in_currency": "the other member for 24 hours says the same",
    "Ethereum.fee_history reward": "the tips are then unknown, and the list of them empty",
    "GitHub.search_repositories archived": "an archived repository may then be listed, which is no wrong value",
    "Hyperliquid.asset_contexts isDelisted": "only delisted ones are marked",
    "Hyperliquid.predicted_fundings fundingIntervalHours": "without it rows are left out, and a short list is withheld",
    "Kalshi.open_events cursor": "then there is no next page, as the answer says",
    "LaunchLibrary.astronauts_in_space abbrev": "the agency's full name stands for it",
    "LaunchLibrary.astronauts_in_space type": "only test objects are marked",
    "LaunchLibrary.upcoming_launches full_name": "the shorter name stands for it",
    "LaunchLibrary.upcoming_launches net_precision": "its times are then approximate",
    "NASA.eonet_events url": "the event's own link stands for it",
    "NOAA.watch_warning_map cap_id": "the row's other members identify it",
    "NOAA.watch_warning_map expiration": "the end stands for it",
    "NOAA.watch_warning_map issuance": "the onset stands for it",
    "NWS.alerts_active identifier": "`id` is the same",
    "NWS.alerts_active references": "only updates have them",
    "OpenMeteo.geocoding population": "it only orders places of the same name",
    "OpenMeteo.geocoding results": "a body without it says that no place has the name",
    "SWPC.solar_wind_1m active": "the newest row of either satellite is taken",
    "Statuspage.OpenAI components": "the verdict of the whole page stands for them",
    "USGS.earthquakes_feed place": "the place is then the word `unknown`",
    "Yahoo.chart close": "then the chart has no points, which the tool says",
    "Yahoo.chart timestamp": "then the chart has no points, which the tool says",
}
"""Members whose absence has a meaning of its own, or that another member replaces."""


class Simulated(NamedTuple):
    """A source, the request of its probe, and the simulated body."""

    source: Source[Any, Any]
    request: Request
    query: Any
    tree: BodyTree


def simulate(source: Source[Any, Any]) -> Simulated | None:
    """Return None for a source that needs a key or another source's answer, or whose body has no members."""
    try:
        query = source.make_probe(AT)
    except LookupError:
        return None
    plan = source.plan(query, {})
    request = plan if isinstance(plan, Get) else plan[0] if plan else None
    if request is None or isinstance(request, Connect):
        return None
    parts, sent = urlsplit(request.url), request.json if isinstance(request, Post) else None
    path, asked = parts.path or "/", "&".join(filter(None, [parts.query, urlencode(dict(request.params))]))
    headers = {name.lower(): value for name, value in request.headers.items()}
    body = b"" if sent is None else json.dumps(sent).encode()
    ask = Ask("GET" if sent is None else "POST", parts.netloc, path, asked, headers, body)
    match = ROUTES.find(replace(ask, path=unquote(path))) or ROUTES.find(ask)
    assert match is not None, request.url
    tree = read_body_tree(match[0].handler(World(1, AT.timestamp()), match[1]).body)
    return None if tree is None else Simulated(source, request, query, tree)


@cache
def simulated() -> tuple[Simulated, ...]:
    load_providers()
    sources = {source.name: source for operation in Registry.load("tools") for source in operation.sources}
    found = (simulate(source) for _, source in sorted(sources.items()) if source.name not in MAPS)
    return tuple(each for each in found if each is not None)


def names(value: Any) -> Iterator[str]:
    """The names of members anywhere; what begins with a digit is a date or a number."""
    if isinstance(value, dict):
        yield from (name for name in value if not name[:1].isdigit())
        value = list(value.values())
    if isinstance(value, list):
        for each in value:
            yield from names(each)


def without(value: Any, name: str) -> Any:
    if isinstance(value, dict):
        return {key: without(each, name) for key, each in value.items() if key != name}
    return [without(each, name) for each in value] if isinstance(value, list) else value


def unnoticed(each: Simulated) -> tuple[int, list[str]]:
    """How many members are reported as missing, and those that are not although their absence changes the answer."""
    source, request, query, tree = each
    usual = read_body(source, request, query, tree.write(tree.value)).value
    reported, silent = 0, []
    roots = set(tree.value) if tree.kind == "xml" else set()
    for name in sorted(set(names(tree.value)) - roots):
        try:
            lacking = read_body(source, request, query, tree.write(without(tree.value, name))).value
        except SourceError:
            continue
        watch = MemberWatch()
        for value in (*[usual] * (OFTEN if lacking != usual else 0), lacking):
            watch.learn(source, "q", value, AT)
        if watch.list_missing(source, lacking):
            reported += 1
        elif lacking != usual:
            silent.append(f"{source.name} {name}")
    return reported, silent


@proves("answers.member-missing")
def test_every_member_that_a_source_can_lose_is_reported_or_refused():
    bodies = simulated()[:: sized(1, fast=8)]
    results = [unnoticed(each) for each in bodies]
    reported, silent = sum(count for count, _ in results), [name for _, names in results for name in names]
    print(f"{reported} members of {len(bodies)} sources are reported when they are missing")
    assert sorted(set(silent) - set(OTHERWISE)) == []
    assert reported >= len(bodies)
    if EVERYTHING:
        assert sorted(set(OTHERWISE) - set(silent)) == []
