"""Every recorded upstream body there is, once: read to its values, refused for what it is, or known to be no use."""

import importlib
import json
import pkgutil
import re
from collections import Counter
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, date, datetime
from decimal import Decimal
from functools import cache, reduce
from typing import Any

import pytest

from tests.extras import find_samples
from tests.served import all_tools
from tests.size import a_share
from tests.tools.recorded import earth, exchanges, money, services, unread
from tests.tools.recorded.rows import Read, Refused, Unread
from tools import sources
from tools.sources.news_feeds import parse as headlines
from toolserver.core.models import iso
from toolserver.serving.packaged_texts import read_shipped_facts
from toolserver.upstream.decode import parse_body
from toolserver.upstream.source import Get, Source, SourceError
from toolserver.world.replay import shifted

ROWS = (*exchanges.ROWS, *money.ROWS, *earth.ROWS, *services.ROWS, *unread.ROWS)
READ = [row for row in ROWS if isinstance(row, Read)]
REFUSED = [row for row in ROWS if isinstance(row, Refused)]
UNREAD = [row for row in ROWS if isinstance(row, Unread)]
TIME = re.compile(r"\d{4}-\d\d-\d\d(T\d\d:\d\d:\d\dZ)?")
BUNDLED = ("Bundled.", "Probe.")  # they ask nobody, or no HTTP
NOW = 1_800_000_000.0
KEYED = ("ABUSE_CH_AUTH_KEY", "FRED_API_KEY", "FINNHUB_API_KEY", "ETHERSCAN_API_KEY", "FIRMS_MAP_KEY")
KEYS = dict.fromkeys(KEYED, "sim-key")


def recorded(name: str) -> bytes:
    """The file, with templates in place of times written out."""
    body = (find_samples() / name).read_bytes()
    return shifted(body, NOW) if "TEMPLATED" in name else body


def asked(source: Source[Any, Any], query: Any) -> Get:
    """The request whose answer the body would be; one for JSON where there is no query at hand to ask with."""
    try:
        plan = source.plan(query, KEYS)
    except (AttributeError, TypeError):
        plan = Get("")
    return plan if isinstance(plan, Get) else plan[0] if plan else Get("")


def read(row: Read | Refused) -> Any:
    """What the engine would make of the body, from the checks before parsing to those after it."""
    source = replace(row.source, least=1) if isinstance(row, Read) and row.cut else row.source
    given = row.given if isinstance(row, Read) else bytes
    return parse_body(source, asked(source, row.query), row.query, given(recorded(row.file)))


def at(result: Any, path: str) -> Any:
    """The value at a path of names and positions; `#` at its end counts the items there."""

    def step(value: Any, name: str) -> Any:
        if isinstance(value, dict):
            return value[name]
        return value[int(name)] if name.isdigit() else getattr(value, name)

    found = reduce(step, filter(None, path.removesuffix("#").split(".")), result)
    return len(found) if path.endswith("#") else plain(found)


def plain(value: Any) -> Any:
    if isinstance(value, datetime):
        return iso(value)
    return value.isoformat() if isinstance(value, date) else value


def stands_in(body: bytes, fact: Any) -> bool:
    """Whether a value is written in the file itself."""
    text = body.decode("utf-16" if body[:2] == b"\xfe\xff" else "utf-8", "replace")
    if isinstance(fact, str):
        return fact in text or json.dumps(fact)[1:-1] in text
    if not isinstance(fact, int | float) or isinstance(fact, bool):
        return False
    exact = f"{Decimal(repr(fact)):f}"
    forms = [repr(fact), exact, exact.removesuffix(".0")] + ([hex(fact)] if isinstance(fact, int) else [])
    return any(form in text for form in forms)


def test_every_recorded_body_is_in_the_table_once_and_nothing_else_is():
    there = {f"{f.parent.name}/{f.name}" for f in find_samples().glob("*/*") if f.is_file()}
    listed = Counter(row.file for row in ROWS)

    assert sorted(there - set(listed)) == []
    assert sorted(set(listed) - there) == []
    assert [file for file, times in listed.items() if times > 1] == []
    tally = Counter(row.source.name for row in (*READ, *REFUSED))
    print(f"\n{len(READ)} read, {len(REFUSED)} refused, {len(UNREAD)} of no use; {len(tally)} sources:")
    print(", ".join(f"{name} {count}" for name, count in sorted(tally.items())))


@pytest.mark.parametrize("row", READ, ids=lambda row: row.file)
def test_a_recorded_body_is_read_to_what_stands_in_it(sample, row):
    body = sample(row.file)
    result = read(row)

    assert {path: at(result, path) for path in row.facts} == dict(row.facts)
    if row.count is not None:
        assert at(result, f"{row.of}#") == row.count
    verbatim = [
        fact for fact in row.facts.values() if not isinstance(fact, bool | None) and not TIME.fullmatch(str(fact))
    ]
    assert [fact for fact in verbatim if not stands_in(body, fact)] == []


@pytest.mark.parametrize("row", REFUSED, ids=lambda row: row.file)
def test_a_recorded_body_that_is_no_answer_is_refused_for_what_it_is(sample, row):
    sample(row.file)
    with pytest.raises(row.error) as caught:
        read(row)
    assert type(caught.value) is row.error
    assert row.says in str(caught.value)


COLLECTED = date(2026, 11, 21)
DOCUMENTED = re.compile("docs|TEMPLATED|official|firebase")


def day_of(row: Read) -> date | None:
    """The newest day that a recording proves: of its newest item, or the month in its name. None for an example."""
    if DOCUMENTED.search(row.file):
        return None
    result, month = read(row), re.search(r"(20\d\d)-(\d\d)(?!\d)", row.file)
    times = [find(result) for find in (row.source.stamp, row.source.newest) if find is not None]
    days = [time.date() for time in times if time is not None and time.date() <= COLLECTED]
    return max([*days, *([date(int(month[1]), int(month[2]), 1)] if month else [])], default=None)


def test_the_shipped_facts_know_of_the_newest_recording_of_each_source(sample):
    newest: dict[str, date] = {}
    for row in READ:
        sample(row.file)
        if (day := day_of(row)) is not None:
            newest[row.source.name] = max(day, newest.get(row.source.name, day))
    facts = read_shipped_facts()
    used = {source.name for operation in all_tools() for source in operation.sources}
    late = {name: day for name, day in newest.items() if name in used and facts[name].seen.on < day}
    wrong = {
        name: known.seen.on
        for name, known in facts.items()
        if known.seen and known.seen.by == "recorded body" and known.seen.on != newest.get(name)
    }
    assert (late, wrong) == ({}, {})
    assert len(newest.keys() & used) >= 40


ALIKE = [
    {"Mempool.network", "Blockstream.network"},
    {"SWPC.solar_wind_1m", "SWPC.propagated_solar_wind"},
    {"NASA.firms_area", "NASA.firms_viirs_24h"},
    {"USGS.earthquakes_feed", "USGS.earthquakes_query"},
]
"""Sources whose bodies have one form. So have all pages of Statuspage, and all boards of Reddit."""


@cache
def all_sources() -> list[Source[Any, Any]]:
    """Every source of every provider, whether a tool uses it or not."""
    modules = [importlib.import_module(f"{sources.__name__}.{m.name}") for m in pkgutil.iter_modules(sources.__path__)]
    values = [value for module in modules for value in vars(module).values()]
    mapped = [inner for value in values if isinstance(value, dict) for inner in value.values()]
    found = {id(source): source for source in (*values, *mapped) if isinstance(source, Source)}
    return [source for source in found.values() if not source.name.startswith(BUNDLED)]


def some_query(source: Source[Any, Any]) -> Any:
    """The query that `doctor` asks, or a number where only another source's answer would make one."""
    try:
        return source.make_probe(datetime.now(UTC))
    except LookupError:
        return 300_000_000


def alike(one: str, other: str) -> bool:
    same_pages = any(one.startswith(provider) and other.startswith(provider) for provider in ("Statuspage.", "Reddit."))
    copies = one.removesuffix("_copy") == other.removesuffix("_copy")
    return copies or same_pages or any({one, other} <= names for names in ALIKE)


@pytest.mark.parametrize("row", a_share(ROWS, 3), ids=lambda row: row.file)
def test_no_other_source_takes_a_recorded_body_for_an_answer(sample, row):
    sample(row.file)
    body, own = recorded(row.file), "" if isinstance(row, Unread) else row.source.name
    taken = []
    for source in all_sources():
        query = some_query(source)
        with suppress(SourceError):
            parse_body(source, asked(source, query), query, body)
            if source.parse is not headlines:  # any feed of titles and dates is one of headlines
                taken.append(source.name)
    assert [name for name in taken if not alike(name, own)] == []


@pytest.mark.parametrize("row", UNREAD, ids=lambda row: row.file)
def test_a_body_that_is_of_no_use_says_why(row):
    assert len(row.why) > 10


@pytest.mark.parametrize(
    "row", [row for row in READ if row.given is not bytes or row.wrapped], ids=lambda row: row.file
)
def test_what_is_not_read_as_recorded_says_why(row):
    assert len(row.wrapped) > 10
