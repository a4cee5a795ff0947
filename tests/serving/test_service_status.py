"""What `/status` says: only what is known, and unknown where nobody asked."""

from dataclasses import replace
from types import SimpleNamespace

import pytest

from rest_bridge.pages.status import write_verdict
from tests.arranged import arrange_service
from tests.calls.parts import START
from tests.calls.toy import FIRST, ONE, REGISTRY
from tests.internet import Internet
from toolserver.clock import ManualClock
from toolserver.core.caller import Caller
from toolserver.money.ledger.client.ledger import OwnerHealth
from toolserver.money.purchases.credit_sales import ChainServers, NoCreditSales
from toolserver.serving.known_sources import KnownSources
from toolserver.serving.readiness import Readiness
from toolserver.serving.service_status import ServiceStatus
from toolserver.upstream.http_sender import Announcement
from toolserver.upstream.source import SourceDown
from toolserver.upstream.source_health import QUARTER_S, QUARTERS, SourceQuarter

CALLER = Caller("192.0.2.1", limited=False)


@pytest.fixture
def clock():
    return ManualClock(START)


@pytest.fixture
def internet():
    made = Internet()
    made.serves(FIRST, {"value": 3})
    return made


@pytest.fixture
async def service(clock, internet):
    async with arrange_service(REGISTRY, clock, transport=internet.transport) as made:
        yield made


async def one(service, name=ONE.name):
    return next(source for source in (await service.status.read())["sources"] if source["name"] == name)


async def test_a_source_that_nobody_asked_is_unknown_and_its_day_is_empty(service):
    source = await one(service)
    assert (source["state"], source["last"], source["good_at"], source["circuit"]) == ("unknown", None, None, "closed")
    assert source["past_day"] == {"asked": 0, "failed": 0, "old": 0, "available": None, "fresh": None}
    assert source["day"] == "." * QUARTERS


async def test_an_exchange_of_a_call_makes_it_up_and_stands_in_the_last_quarter(service):
    await service.pipeline.call(REGISTRY["number"], {}, CALLER)
    source = await one(service)
    assert (source["state"], source["last"], source["good_at"]) == ("up", "ok", "2027-01-15T08:00:00Z")
    assert source["day"] == "." * (QUARTERS - 1) + "g"
    status = await service.status.read()
    assert (status["counts"]["up"], status["service"]["calls"]) == (1, 1)
    assert status["service"]["p50_within_s"] in (0.001, 0.005, 0.02, 0.1, 0.5, 2.0, 10.0)


async def test_what_is_known_beyond_the_past_day_stands_beside_it(service, tmp_path):
    unknown = {"seen_on": None, "seen_by": None, "announced": [], "gone": [], "alone": "", "note": ""}
    assert (await one(service))["known"] == unknown
    ends = Announcement(ONE.name, "sunset", "Mon, 01 Mar 2027 00:00:00 GMT", START.timestamp())
    service.status.known = KnownSources(tmp_path, service.fetcher, service.cache.member_watch)
    service.status.known.keep([ONE.name], [ends], START.date())
    known = (await one(service))["known"]
    assert (known["seen_on"], known["seen_by"]) == ("2027-01-15", "live call")
    assert known["announced"] == [
        {"kind": "sunset", "text": ends.text, "on": "2027-01-15", "ends_on": "2027-03-01"},
    ]


async def test_the_day_has_a_letter_for_each_quarter_and_shares_of_what_was_asked(service, clock):
    now = int(clock.time() // QUARTER_S)
    rows = [
        SourceQuarter(now - QUARTERS, good=9, last="ok"),
        SourceQuarter(now - QUARTERS + 1, good=4, last="ok", good_at=5.0),
        SourceQuarter(now - 2, good=1, old=1, last="frozen"),
        SourceQuarter(now - 1, failed=2, last="timeout", last_at=clock.time() - 60),
    ]
    service.fetcher.history.restore([(ONE.name, row) for row in rows], [])
    source = await one(service)
    assert source["day"] == "g" + "." * (QUARTERS - 4) + "pf."
    assert (source["state"], source["last"]) == ("failing", "timeout")
    assert source["past_day"] == {"asked": 8, "failed": 2, "old": 1, "available": 0.75, "fresh": 0.625}
    assert source["hour"] == {"asked": 4, "failed": 2, "old": 1, "available": 0.5, "fresh": 0.25}
    assert source["good_at"] == "1970-01-01T00:00:05Z"


async def test_a_source_whose_circuit_is_open_is_down_and_says_since_when(service, clock):
    for _ in range(3):
        service.fetcher.health.record_failure(ONE.name, SourceDown("no route"))
    clock.advance(20)
    source = await one(service)
    assert (source["state"], source["circuit"], source["last"]) == ("down", "open", "connect")
    assert source["changed_at"] == "2027-01-15T08:00:00Z"
    changes = (await service.status.read())["changes"]
    assert changes == [{"at": "2027-01-15T08:00:00Z", "source": ONE.name, "kind": "down", "reason": "connect"}]


async def test_a_check_that_fails_degrades_the_whole_and_the_ledger(service):
    class Unwritten(Readiness):
        async def check(self):
            return {"running": True, "ledger_file": True, "ledger_write": False}

    readiness = Unwritten(None, service.settings, monotonic=service.clock.monotonic)
    known = (service.metrics, service.info, service.money)
    status = await ServiceStatus(service.registry, service.fetcher, *known, readiness, service.status.known).read()
    assert (status["status"], status["ledger"]) == ("degraded", {"mode": "own", "up": False})
    assert (status["degraded"], status["unsold"]) == (["ledger"], "the ledger cannot be written")
    assert write_verdict(status) == (
        "Free tools work. Nothing can be bought at the moment: the ledger cannot be written."
    )


async def test_ledger_and_chain_say_where_they_are(service):
    status = await service.status.read()
    assert (status["ledger"], status["chain"]) == ({"mode": "memory", "up": True}, None)

    class Watching(NoCreditSales):
        def count_servers(self):
            return ChainServers(2, 1)

    followed = SimpleNamespace(health=OwnerHealth("open", 2, 12.4, 5))
    money = replace(service.money, own=None, followed=followed, payments=Watching())
    known = (service.metrics, service.info, money)
    status = await ServiceStatus(
        service.registry, service.fetcher, *known, service.readiness, service.status.known
    ).read()
    assert status["ledger"] == {"mode": "followed", "up": False, "retry_in_s": 12, "untold": 5, "rejected": None}
    assert status["status"] == "degraded"
    assert status["chain"] == {"servers": 2, "usable": 1}
