"""A statement explains the balance to the credit, on every ledger, page by page."""

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.calls.parts import START
from tests.money.ledger.ledgers import KINDS, opened, token
from tests.requirements import proves
from toolserver.clock import ManualClock
from toolserver.errors import InsufficientCredits, InvalidToken, NotFound
from toolserver.money.ledger.memory import MemoryLedger
from toolserver.money.ledger.protocol import StatementQuery
from toolserver.money.ledger.statements import (
    LedgerEntry,
    NoStatements,
    StatementRange,
    make_page,
    show_income,
    show_taken,
)

BUYER, NEIGHBOUR = token(1), token(2)


@pytest.fixture
def clock():
    return ManualClock(START)


@pytest.fixture(params=KINDS)
async def ledger(request, tmp_path, clock):
    async with opened(request.param, tmp_path, clock) as ledger:
        await ledger.mint(BUYER, 10, cause=f"eip155:8453:0x{'ab' * 32}:0")
        await ledger.mint(NEIGHBOUR, 10, cause="grant:1")
        yield ledger


async def use(ledger, call_id, who=BUYER, credits=2, ends=(None,)):
    await ledger.reserve(call_id, who, credits, endpoint="/api/pro/x", ttl_s=60)
    for end in ends:
        await ledger.settle(call_id, no_charge=end)


async def read_all(ledger, who=BUYER, limit=100, **query):
    """Every entry, page by page."""
    entries, before = [], 2**62
    while True:
        page = await ledger.statement(who, StatementQuery(before=before, limit=limit, **query))
        entries += page.entries
        if page.next_before is None:
            return entries, page.credits
        before = page.next_before


@proves("statement.entries")
async def test_each_movement_has_its_entry_and_they_add_up_to_the_balance(ledger):
    await use(ledger, "charged")
    await use(ledger, "released", ends=("5xx",))
    await use(ledger, "reversed", ends=(None, "delivery_failed"))
    await ledger.charge("at-once", BUYER, 1, endpoint="/api/pro/y")
    await use(ledger, "open", ends=())
    await use(ledger, "not-mine", who=NEIGHBOUR)

    entries, credits = await read_all(ledger)

    assert [(e.kind, e.credits, e.call_id, e.state, e.reason) for e in entries] == [
        ("call", -2, "open", "open", None),
        ("call", -1, "at-once", "posted", None),
        ("reversal", 2, "reversed", "reversed", "delivery_failed"),
        ("call", -2, "reversed", "reversed", None),
        ("call", 0, "released", "voided", "5xx"),
        ("call", -2, "charged", "posted", None),
        ("purchase", 10, None, None, None),
    ]
    assert credits == sum(e.credits for e in entries) == await ledger.balance(BUYER) == 5
    assert entries[1].endpoint == "/api/pro/y"
    assert entries[-1].cause.startswith("eip155:8453:0x")


@proves("statement.pages")
async def test_pages_of_any_size_hold_every_entry_once_in_order(ledger):
    for number in range(7):
        await use(ledger, f"c{number}", credits=1, ends=(None, "5xx") if number % 3 else (None,))
    whole, _ = await read_all(ledger)

    assert len(whole) == 12
    assert all(later.seq > earlier.seq for later, earlier in pairwise(whole))
    for limit in (1, 2, 5, 11, 12, 13):
        assert (await read_all(ledger, limit=limit))[0] == whole


async def test_a_span_of_time_is_half_open(ledger, clock):
    at = int(clock.time() * 1000)
    clock.advance(60)
    await use(ledger, "later")

    assert [e.kind for e in (await read_all(ledger, since=at, until=at + 60_000))[0]] == ["purchase"]
    assert [e.kind for e in (await read_all(ledger, since=at + 1))[0]] == ["call"]
    assert (await read_all(ledger, since=at + 60_001))[0] == []


async def test_a_revoked_token_keeps_its_statement_and_a_stranger_has_none(ledger):
    await use(ledger, "c")
    fingerprint = (await ledger.standing(BUYER)).fingerprint
    await ledger.revoke(fingerprint, "lost")

    assert len((await read_all(ledger))[0]) == 2
    with pytest.raises(InvalidToken):
        await ledger.statement(token(9), StatementQuery())


def test_what_brought_credits_or_took_them_names_the_kind():
    brought = [show_income(1, 0, 5, cause).kind for cause in ("eip155:1:0x", "x402:a", "grant:a", "demo", None)]
    taken = [show_taken(1, 0, 5, cause) for cause in ("refund:a", None)]

    assert brought == ["purchase", "top_up", "grant", "credit", "credit"]
    assert [(e.kind, e.credits) for e in taken] == [("refund", -5), ("taken_back", -5)]


def test_a_page_that_is_full_to_the_last_entry_has_no_next_one():
    entries = [LedgerEntry(seq, 0, "call", -1) for seq in (3, 1, 2)]

    assert make_page(entries, StatementQuery(limit=3), 0).next_before is None
    assert make_page(entries, StatementQuery(limit=2), 0).next_before == 2


STEPS = st.lists(st.tuples(st.integers(1, 4), st.lists(st.sampled_from([None, "5xx"]), max_size=3)), max_size=20)


@given(STEPS)
@settings(max_examples=30)
async def test_whatever_happens_the_entries_add_up(steps):
    ledger = MemoryLedger(ManualClock(START))
    await ledger.mint(BUYER, 20, cause="grant:1")
    for number, (credits, ends) in enumerate(steps):
        try:
            await use(ledger, f"c{number}", credits=credits, ends=ends)
        except InsufficientCredits:
            pass

    entries, credits = await read_all(ledger, limit=3)

    assert sum(e.credits for e in entries) == credits == await ledger.balance(BUYER)


async def test_a_server_without_a_ledger_says_so():
    with pytest.raises(NotFound, match="belongs to another service"):
        await NoStatements().read("svc_live_x", StatementRange(None, None, None, 10))
