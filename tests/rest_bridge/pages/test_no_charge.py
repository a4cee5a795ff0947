"""/no-charge: the account of a day as a page that needs no script."""

from datetime import timedelta

import pytest

from rest_bridge.asgi import parse_request
from rest_bridge.pages.no_charge import no_charge_handler, no_charge_page
from tests.calls.parts import RICH, START
from tests.calls.toy import REGISTRY
from tests.catalog.tiny import FACTS
from tests.rest_bridge.markup import Page
from toolserver.clock import ManualClock
from toolserver.core.caller import token_hash
from toolserver.errors import InvalidArguments, NotFound
from toolserver.money.receipts.keys import LOG_KEYS, RECEIPT_KEYS, ensure_keys
from toolserver.money.receipts.service import Issuer, ReceiptService
from toolserver.money.receipts.sign import Sale
from toolserver.money.receipts.sql_store import SqlReceiptStore
from toolserver.sql.sqlite import in_memory

FAILED = Sale("call_" + "1" * 32, token_hash(RICH).hex(), "/api/pro/x", "GET /api/pro/x", 2, 0, 98, reason="5xx")


class Log:
    """The page over one service."""

    def __init__(self, folder, rows):
        for name in (RECEIPT_KEYS, LOG_KEYS):
            ensure_keys(folder / name)
        self.clock = ManualClock(START)
        issuer = Issuer("https://data.example", "data.example")
        self.evidence = ReceiptService(SqlReceiptStore(rows), folder, clock=self.clock, issuer=issuer)
        self.handler = no_charge_handler(self.evidence, self.clock, REGISTRY, FACTS)

    async def reply(self, query=b""):
        scope = {"path": "/no-charge", "query_string": query, "headers": []}
        return await self.handler(scope, parse_request(scope))

    async def page(self, query=b""):
        return Page((await self.reply(query)).body)


@pytest.fixture
async def log(tmp_path):
    async with in_memory() as rows:
        yield Log(tmp_path, rows)


async def test_a_day_shows_its_sums_its_entries_and_the_signed_state(log):
    for number in (1, 2, 3):
        await log.evidence.sign(FAILED._replace(call_id=f"call_{number:032x}"))
    page = await log.page()
    signed = await log.evidence.log.checkpoint()
    assert page.faults == []
    assert "the call failed, or no source of the payload answered" in page.text
    assert signed.note in page.text
    assert [word for word in page.words if word == "3"] != []
    assert [word for word in page.words if word == "6"] != []
    today = log.clock.now().date().isoformat()
    assert f"/api/payment/no-charge-stats?date={today}" in page.links


async def test_a_call_has_no_entry_until_its_hour_is_over(log):
    await log.evidence.sign(FAILED)
    early = await log.page()
    log.clock.advance(3660)
    await log.evidence.log.close_hours()
    late = await log.page()
    assert ("open hour" in early.text, "open hour" in late.text) == (True, False)


async def test_a_quiet_day_says_so_and_other_days_are_a_link_away(log):
    await log.evidence.sign(FAILED)
    before = log.clock.now().date()
    page = await log.page(f"date={before - timedelta(days=1)}".encode())
    assert "None on this day" in page.text
    assert f"/no-charge?date={before}" in page.links


async def test_it_is_kept_for_seconds_only_and_has_the_policy_of_pages(log):
    headers = dict((await log.reply()).headers)
    assert headers[b"cache-control"] == b"public, max-age=5"
    assert b"script-src 'self'" in headers[b"content-security-policy"]


@pytest.mark.parametrize("query", [b"date=yesterday", b"date=20270115", b"date=2027-02-30", b"date=1800000000"])
async def test_what_is_no_day_is_refused(log, query):
    with pytest.raises(InvalidArguments, match="a date such as"):
        await log.page(query)


async def test_without_an_account_of_calls_there_is_no_page(log):
    log.handler = no_charge_handler(None, log.clock, REGISTRY, FACTS)
    with pytest.raises(NotFound):
        await log.page()


async def test_a_page_shows_fifty_calls_and_thirty_days_and_says_that_there_are_more(log):
    for number in range(51):
        await log.evidence.sign(FAILED._replace(call_id=f"call_{number:032x}"))
    day = await log.evidence.no_charge(START.date())
    days = [(f"2026-12-{number:02}", number) for number in range(31, 0, -1)]
    page = Page(no_charge_page(REGISTRY, FACTS, day, days, "signed").body)
    assert page.text.count("open hour") == 50
    assert sum(link.startswith("/no-charge?date=") for link in page.links) == 30
    assert "/no-charge?date=2026-12-02" in page.links
    assert "(up to 200 calls)" in page.text
    day["events"].pop()
    day["count"] = 50
    assert "(up to 200 calls)" not in Page(no_charge_page(REGISTRY, FACTS, day, days, "signed").body).text


async def test_an_empty_date_is_today(log):
    today = (await log.reply()).body
    assert (await log.reply(b"date=")).body == today
