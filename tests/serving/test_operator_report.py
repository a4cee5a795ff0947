"""The operators' report: money of today, what is pending, the worst source first, the log, and never a secret."""

import json

import pytest

from tests.arranged import arrange_service
from tests.calls.parts import START
from tests.calls.toy import ONE, REGISTRY
from tests.money.ledger.ledgers import token
from tests.webhooks.shop import subscription
from toolserver.app import Service, ServiceParts
from toolserver.clock import ManualClock
from toolserver.money.ledger.store import FILE
from toolserver.money.receipts.log import LogForked
from toolserver.serving.operator_report import OperatorReport, list_advice
from toolserver.settings import Settings, WebhookSettings
from toolserver.sql.sqlite import in_memory
from toolserver.upstream.source import SourceDown
from toolserver.upstream.source_health import QUARTER_S, SourceQuarter
from toolserver.webhooks.store import WebhookStore
from toolserver.webhooks.subscription_operations import AddSubscription

DAY_S = 86_400


@pytest.fixture
def clock():
    return ManualClock(START)


@pytest.fixture
async def service(tmp_path, clock):
    """A service with a ledger in a file."""
    settings = Settings(data_dir=tmp_path, webhooks=WebhookSettings(enabled=False))
    async with Service.build(settings, ServiceParts(registry=REGISTRY, clock=clock, background=False)) as made:
        yield made


def report_of(service, webhooks=None):
    return OperatorReport(
        service.settings, service.money, service.status, service.readiness, service.fetcher, webhooks, service.clock
    )


async def test_the_money_is_that_of_today_and_what_is_owed_is_of_all_days(service, clock):
    own = service.money.own
    await own.mint(token(1), 10, cause="grant:1")
    await own.charge("call-1", token(1), 3, endpoint="/x")
    clock.advance(DAY_S)
    await own.charge("call-2", token(1), 2, endpoint="/x")
    money = (await report_of(service).read())["money"]
    assert (money["day"], money["agrees"], money["problems"]) == ("2027-01-16", True, [])
    assert (money["credits"]["used"], money["credits"]["granted"], money["credits"]["owed_now"]) == (2, 0, 5)
    assert (money["quotes"]["number"], money["cases"], money["unsettled"]) == (0, [], [])


async def test_calls_that_hold_credits_are_pending_and_no_token_is_named(service):
    own = service.money.own
    await own.mint(token(1), 10, cause="grant:1")
    await own.reserve("call-1", token(1), 4, endpoint="/x", ttl_s=30)
    found = await report_of(service).read()
    assert found["pending"]["reserved"] == {"calls": 1, "credits": 4, "first_ends_at": "2027-01-15T08:00:30Z"}
    assert "svc_live" not in json.dumps(found)


async def test_webhooks_are_counted_and_those_that_fail_are_told_without_their_address(service):
    async with in_memory() as file:
        store = WebhookStore(file)
        await store.apply(AddSubscription(subscription(1)))
        await store.apply(AddSubscription(subscription(2, consecutive_failures=3, last_error="http_500")))
        await store.apply(AddSubscription(subscription(3, state="paused", pause_reason="insufficient_credits")))
        found = (await report_of(service, store).read())["pending"]["webhooks"]
    assert (found["active"], found["failing"], found["paused"]) == (2, 1, 1)
    assert [(each["state"], each["reason"]) for each in found["unwell"]] == [
        ("paused", "insufficient_credits"),
        ("active", "http_500"),
    ]
    assert subscription(2).host not in json.dumps(found)


async def test_sources_come_the_worst_first_and_unknown_ones_not_at_all(service, clock):
    quarter = int(clock.time() // QUARTER_S)
    names = [source["name"] for source in (await service.status.read())["sources"]]
    assert len(names) >= 2
    last, first = names[0], names[1]
    rows = [
        (last, SourceQuarter(quarter, failed=5, last="timeout")),
        (first, SourceQuarter(quarter, good=95, last="ok")),
    ]
    service.fetcher.history.restore(rows, [])
    for _ in range(3):
        service.fetcher.health.record_failure(first, SourceDown("no route"))
    found = await report_of(service).read()
    assert [source["name"] for source in found["sources"]] == [first, last]
    assert [each["name"] for each in found["left_alone"]] == [first]


async def test_the_log_is_told_with_its_signed_state(service):
    log = (await report_of(service).read())["log"]
    assert (log["size"], log["waiting"], log["uncharged_today"], log["trouble"]) == (0, 0, 0, None)
    assert log["note"] == (await service.money.evidence.log.checkpoint()).note


async def test_a_log_that_was_changed_needs_a_person(service, monkeypatch):
    async def checkpoint():
        raise LogForked("the root is another")

    monkeypatch.setattr(service.money.evidence.log, "checkpoint", checkpoint)
    found = await report_of(service).read()
    assert (found["log"]["trouble"], found["log"]["note"]) == ("It was changed: the root is another", None)
    assert ("log_unwell", True) in [(each["code"], each["urgent"]) for each in found["advice"]]


async def test_books_that_disagree_and_payments_in_review_come_first_among_the_advice(service):
    money = {"problems": ["owed now: the transfers say 5 credits, the accounts 6"], "cases": [{}]}
    found = list_advice(service.settings, {}, money, None)
    assert [(each.code, each.urgent) for each in found[:2]] == [("books_disagree", True), ("payments_in_review", True)]
    assert found[-1].code == "no_contact"


async def test_a_ledger_file_that_cannot_be_read_is_told_and_the_rest_stays(service):
    path = service.settings.data_dir / FILE
    path.rename(path.with_suffix(".away"))
    found = await report_of(service).read()
    path.with_suffix(".away").rename(path)
    assert found["money"]["absent"].startswith("The ledger cannot be read")
    assert found["log"]["trouble"].startswith("It cannot be read")
    assert found["pending"] == {"webhooks": None, "reserved": None}
    assert {each["code"] for each in found["advice"] if each["urgent"]} == {"log_unwell", "ledger_lost"}


async def test_where_nothing_is_sold_there_is_no_money(clock):
    async with arrange_service(REGISTRY, clock) as service:
        found = await report_of(service).read()
    assert found["money"] == {"absent": "Nothing is sold here."}
    assert (found["log"], found["pending"]["webhooks"]) == (None, None)
    assert ONE.name not in [source["name"] for source in found["sources"]]


async def test_what_the_instance_works_without_comes_first_with_the_way_out(service):
    told = "Redis is a read-only replica; name its master."
    service.readiness._losses = {"redis": lambda: told, "clock": lambda: None}
    found = await report_of(service).read()
    first = found["advice"][0]
    assert (first["code"], first["urgent"], first["told"]) == ("redis_lost", True, told)
    assert found["degraded"] == ["redis"]
