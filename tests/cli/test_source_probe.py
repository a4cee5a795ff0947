"""The verdict on a request to a source, and the bodies of the simulated world that its answer is compared with."""

import json
import stat
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import timedelta

import httpx
import pytest

from tests.calls.parts import START, number_source
from tests.calls.toy import FIRST, REGISTRY
from tests.internet import Internet
from tests.served import VIA, Upstreams
from toolserver.app import Service, ServiceParts
from toolserver.cli import source_probe
from toolserver.cli.source_probe import (
    SEEDS,
    FolderInUse,
    SourceRecording,
    probe_source,
    probe_sources,
    simulate_bodies,
)
from toolserver.clock import ManualClock
from toolserver.core.recorded_exchange import REMOVED, RecordedExchange, read_exchanges, read_summary
from toolserver.settings import Settings, SourceSettings, UpstreamSettings
from toolserver.upstream.drift import Drift
from toolserver.upstream.source import Get
from toolserver.world.providers import load_providers

THREATFOX = "ThreatFox.recent_iocs"
ONE = number_source("Test.one", newest=lambda found: found.at)


@asynccontextmanager
async def service(internet, registry=REGISTRY, **parts):
    given = ServiceParts(
        registry=registry,
        clock=ManualClock(START),
        in_memory=True,
        background=False,
        transport=internet.transport,
        **parts,
    )
    async with Service.build(Settings(), given) as made:
        yield made


async def probed(answer, source=ONE):
    """The probe of one source of the test registry, which the network answers so."""
    internet = Internet()
    internet.serves(FIRST, answer)
    async with service(internet) as made:
        return await probe_source(made, source)


async def test_a_source_that_answers_is_reported_with_the_age_of_its_newest_item():
    at = (START - timedelta(seconds=90)).timestamp()
    found = await probed({"value": 3, "at": at})
    assert (found.reachable, found.status, found.parse, found.age_s) == (True, "ok", "ok", 90)
    assert (found.source, found.licence) == ("Test.one", "yes")
    assert found.latency_ms is not None


@pytest.mark.parametrize(
    ("answer", "reachable", "status", "parse"),
    [
        (httpx.Response(500), True, "http_500", "-"),
        (httpx.ConnectError("refused"), False, "connect", "-"),
        ({"other": 1}, True, "changed", "changed"),
    ],
)
async def test_what_is_wrong_with_a_source_is_named(answer, reachable, status, parse):
    found = await probed(answer)
    assert (found.reachable, found.status, found.parse, found.age_s) == (reachable, status, parse, None)
    assert found.detail


async def test_a_source_that_needs_a_query_is_no_fault():
    def request(query, keys):
        raise TypeError("no place given")

    found = await probed({"value": 3}, replace(ONE, request=request))
    assert (found.status, found.reachable, found.detail) == ("no_probe", False, "needs a query: TypeError")


async def test_every_source_of_every_tool_is_requested_once_and_sorted_by_name():
    internet = Internet()
    async with service(internet) as made:
        found = await probe_sources(made)
    names = [source.name for source in REGISTRY.sources]
    assert [probe.source for probe in found] == sorted(names)


@pytest.mark.parametrize(
    ("answer", "verdict"),
    [
        ({"value": 3}, "ok"),
        ({"other": 1}, "unreadable"),
        (httpx.Response(404), "unreadable"),
        (httpx.Response(403), "refused"),
        (httpx.Response(429), "refused"),
        (httpx.Response(500), "unreachable"),
        (httpx.ConnectError("refused"), "unreachable"),
    ],
)
async def test_what_came_of_it_is_said_in_a_word(answer, verdict):
    assert (await probed(answer)).verdict == verdict


async def test_a_source_without_its_key_is_not_asked():
    assert (await probed({"value": 3}, replace(ONE, request=lambda query, keys: None))).verdict == "not asked"


@pytest.fixture
def simulated(monkeypatch):
    """The bodies of the simulated world for every request."""
    bodies = [json.dumps({"value": 1, "at": START.timestamp()}).encode()]
    monkeypatch.setattr(source_probe, "simulate_bodies", lambda exchange: bodies)
    return bodies


async def recorded(tmp_path, answer, source=ONE):
    """The probe of a source, recorded."""
    internet, recording = Internet(), SourceRecording(tmp_path / "rec", {})
    internet.serves(FIRST, answer)
    async with service(internet, record=recording.record) as made:
        return await probe_source(made, source, recording), made, internet


@pytest.mark.parametrize(
    ("answer", "verdict", "drift"),
    [
        ({"value": 2, "at": START.timestamp()}, "ok", ()),
        ({"value": 2}, "drift", (Drift("at", "absent", "answers change", True),)),
        (
            {"value": "2", "at": START.timestamp()},
            "ok",
            (Drift("value", "string instead of number", "read all the same", False),),
        ),
        (
            {"worth": 2, "at": START.timestamp()},
            "unreadable",
            (Drift("value", "absent", "parse fails", True),),
        ),
        (httpx.Response(403, json={"error": "no"}), "refused", None),
        (httpx.Response(200, text="<html></html>"), "unreadable", None),
    ],
)
async def test_a_recorded_answer_is_compared_with_what_the_parser_reads(tmp_path, simulated, answer, verdict, drift):
    probe, _, _ = await recorded(tmp_path, answer)
    assert (probe.verdict, probe.drift) == (verdict, drift)


async def test_what_was_probed_is_not_asked_again_by_a_tool(tmp_path, simulated):
    internet, recording = Internet(), SourceRecording(tmp_path / "rec", {})
    internet.serves(FIRST, {"value": 2})
    async with service(internet, record=recording.record) as made:
        await probe_source(made, ONE, recording)
        answer = await made.cache.fresh(ONE, None, sla_s=0)
    assert answer.value.value == 2
    assert (len(internet.asked), recording.count) == (1, 1)


async def test_rows_that_were_left_out_are_counted(tmp_path, simulated):
    from toolserver.upstream.decode import read_rows

    source = replace(ONE, parse=lambda body, query: read_rows(body, float), newest=None)
    probe, _, _ = await recorded(tmp_path, [1, 2, "x"], source)
    assert (probe.rows, probe.dropped, probe.detail) == (2, 1, "1 rows left out")


async def test_a_probe_is_made_from_the_services_time():
    probe = await probed({"value": 3}, replace(ONE, probe=lambda now: now.strftime("at%Y")))
    assert probe.status == "ok"


@asynccontextmanager
async def simulated_service(**keys):
    """A service on the simulated world with these API keys."""
    clock = ManualClock(START)
    settings = Settings(sources=SourceSettings(keys=keys), upstream=UpstreamSettings(via=VIA))
    given = ServiceParts(clock=clock, in_memory=True, background=False, transport=Upstreams(clock).transport)
    async with Service.build(settings, given) as made:
        yield made


async def probe_abuse_ch(**keys):
    """The probes of those feeds of abuse.ch that are read with a key or without."""
    load_providers()
    async with simulated_service(**keys) as made:
        wanted = [source for source in made.registry.sources if source.name in ("URLhaus.recent_urls", THREATFOX)]
        found = [probe for source in wanted for probe in await source_probe.probe_forms(made, source, None)]
    return {(probe.source, probe.form): probe for probe in found}


async def test_with_a_key_a_source_is_asked_with_it_and_without():
    found = await probe_abuse_ch(ABUSE_CH_AUTH_KEY="sim-key")
    assert {name: probe.status for name, probe in found.items()} == {
        (source, form): "ok" for source in ("URLhaus.recent_urls", THREATFOX) for form in ("keyed", "keyless")
    }


async def test_a_key_that_is_refused_says_nothing_of_the_way_without_it():
    found = await probe_abuse_ch(ABUSE_CH_AUTH_KEY="wrong")
    assert {form: probe.verdict for (source, form), probe in found.items() if source == THREATFOX} == {
        "keyed": "refused",
        "keyless": "ok",
    }


async def test_without_a_key_the_way_with_it_is_listed_as_not_asked():
    found = await probe_abuse_ch()
    assert found[THREATFOX, "keyless"].verdict == "ok"
    assert (found[THREATFOX, "keyed"].verdict, found[THREATFOX, "keyed"].key) == ("not asked", "missing")


async def test_a_source_that_knows_no_key_has_one_form():
    async with service(Internet()) as made:
        assert [probe.form for probe in await source_probe.probe_forms(made, ONE, None)] == [None]


AT = 1_800_000_000.5


def asked(url, **parts):
    return RecordedExchange("Any", parts.pop("method", "GET"), url, sent_at=AT, **parts)


def test_there_is_a_body_for_each_seed():
    bodies = simulate_bodies(asked("https://api.kraken.com/0/public/OHLC?pair=XBTUSD&interval=60"))
    assert len(bodies) == len(set(bodies)) == len(SEEDS)
    assert all("XXBTZUSD" in json.loads(body)["result"] for body in bodies)


def test_a_posted_question_is_asked_as_it_was():
    call = {"jsonrpc": "2.0", "id": 1, "method": "eth_blockNumber", "params": []}
    bodies = simulate_bodies(asked("https://ethereum-rpc.publicnode.com/", method="POST", sent_json=call))
    assert all(json.loads(body)["result"].startswith("0x") for body in bodies)


def test_what_stands_in_place_of_a_key_is_taken_for_one():
    url = f"https://api.stlouisfed.org/fred/series/observations?series_id=DFF&limit=10&sort_order=desc&file_type=json&api_key={REMOVED}"
    assert len(simulate_bodies(asked(url))) == len(SEEDS)
    assert simulate_bodies(asked(url.replace(REMOVED, "other"))) == []


def test_a_path_that_is_escaped_is_found():
    url = "https://query1.finance.yahoo.com/v8/finance/chart/GC%3DF?range=5d&interval=1d"
    assert len(simulate_bodies(asked(url))) == len(SEEDS)


def test_what_is_not_simulated_has_none():
    assert simulate_bodies(asked("https://nowhere.example/")) == []


ONE, TWO = number_source("Test.one"), number_source("Test.two")
REQUEST = Get("https://test.example/")
KEY = "k3y-0123456789"


def exchange(source, url):
    return RecordedExchange(source.name, "GET", url, status=200, body=KEY.encode())


def test_exchanges_are_numbered_by_source_and_hold_no_key(tmp_path):
    recording = SourceRecording(tmp_path / "rec", {"API_KEY": KEY})
    for source, url in ((ONE, f"https://a/?key={KEY}"), (TWO, "https://b/"), (ONE, "https://c/")):
        recording.record(source, REQUEST, exchange(source, url))
    recording.finish(5.0, note=f"said {KEY}")
    found = list(read_exchanges(tmp_path / "rec"))
    assert [each.url for each in found] == [f"https://a/?key={REMOVED}", "https://c/", "https://b/"]
    assert read_summary(tmp_path / "rec") | {"version": ""} == {
        "format": 1,
        "version": "",
        "recorded_at": 5.0,
        "exchanges": 3,
        "note": f"said {REMOVED}",
    }
    assert all(KEY.encode() not in path.read_bytes() for path in tmp_path.rglob("*.*") if path.is_file())


def test_nobody_else_can_read_it(tmp_path):
    (tmp_path / "rec").mkdir(mode=0o755)
    recording = SourceRecording(tmp_path / "rec", {})
    recording.record(ONE, REQUEST, exchange(ONE, "https://a/"))
    recording.finish(5.0)
    modes = {stat.S_IMODE(path.stat().st_mode) for path in (tmp_path / "rec").rglob("*") if path.is_file()}
    folders = {stat.S_IMODE(path.stat().st_mode) for path in (tmp_path / "rec", tmp_path / "rec" / ONE.name)}
    assert (modes, folders) == ({0o600}, {0o700})


def test_two_recordings_are_never_mixed(tmp_path):
    (tmp_path / "x").write_text("")
    with pytest.raises(FolderInUse):
        SourceRecording(tmp_path, {})


def test_only_what_a_block_exchanges_is_collected(tmp_path):
    recording = SourceRecording(tmp_path / "rec", {"API_KEY": KEY})
    recording.record(ONE, REQUEST, exchange(ONE, "https://before/"))
    with recording.collect() as found:
        recording.record(ONE, REQUEST, exchange(ONE, f"https://a/{KEY}"))
    recording.record(ONE, REQUEST, exchange(ONE, "https://after/"))
    assert [(each.request, each.exchange.url) for each in found] == [(REQUEST, f"https://a/{REMOVED}")]
    assert recording.count == 3


def test_the_summary_is_plain_json(tmp_path):
    recording = SourceRecording(tmp_path / "rec", {})
    recording.finish(5.0, sources=[{"source": "é"}])
    text = (tmp_path / "rec" / "recording.json").read_text(encoding="utf-8")
    assert json.loads(text)["sources"] == [{"source": "é"}]
    assert '\n  "sources": [' in text
