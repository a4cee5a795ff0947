"""The statement of an account as its owner reads it: with the ids of receipts, and nothing of the ledger's inside."""

from datetime import UTC, datetime, timedelta

import pytest

from tests.calls.parts import START
from tests.requirements import proves
from toolserver.clock import ManualClock
from toolserver.money.ledger.allowance import AllowanceTerms
from toolserver.money.ledger.memory import MemoryLedger
from toolserver.money.ledger.state import AccountRef
from toolserver.money.ledger.statements import StatementLine, StatementRange
from toolserver.money.receipts.service import AccountStatements

TOKEN = "svc_live_" + "a" * 64
CALL, OTHER = "call_" + "1" * 32, "call_" + "2" * 32
ALL = StatementRange(None, None, None, 50)


class Kept:
    """Receipts of which one exists."""

    async def list_known(self, ids):
        return {f"rcpt_{'1' * 32}"} & set(ids)


@pytest.fixture
async def ledger():
    ledger = MemoryLedger(ManualClock(START))
    await ledger.mint(TOKEN, 10, cause=f"eip155:8453:0x{'cd' * 32}:0")
    for call in (CALL, OTHER, f"sister:call_{'3' * 32}"):
        await ledger.charge(call, TOKEN, 2, endpoint="/api/pro/x")
    return ledger


@proves("statement.receipts")
async def test_a_call_names_the_receipt_that_exists_and_a_purchase_its_transaction(ledger):
    found = await AccountStatements(ledger, Kept()).read(TOKEN, ALL)

    assert found.credits == 4
    assert [line.receipt_id for line in found.lines] == [f"rcpt_{'3' * 32}", None, f"rcpt_{'1' * 32}", None]
    assert [line.call_id for line in found.lines] == [f"call_{'3' * 32}", OTHER, CALL, None]
    assert found.lines[-1].transaction == f"0x{'cd' * 32}"
    assert found.lines[0].at == START


async def test_the_cursor_leads_on_and_ends(ledger):
    statements = AccountStatements(ledger, None)
    first = await statements.read(TOKEN, ALL._replace(limit=3))
    rest = await statements.read(TOKEN, ALL._replace(limit=3, cursor=first.cursor))

    assert [line.kind for line in (*first.lines, *rest.lines)] == ["call", "call", "call", "purchase"]
    assert rest.cursor is None


async def test_a_range_outside_is_empty(ledger):
    early = ALL._replace(until=START)
    late = ALL._replace(since=datetime(2030, 1, 1, tzinfo=UTC))

    for wanted in (early, late):
        assert (await AccountStatements(ledger, None).read(TOKEN, wanted)).lines == []


async def test_a_line_says_everything_about_its_movement(ledger):
    child = await ledger.create_allowance(TOKEN, "c" * 64, AllowanceTerms("child", 5))
    await ledger.charge(f"call_{'4' * 32}", AccountRef(child.ref), 1, endpoint="/api/pro/y")
    await ledger.settle(OTHER, no_charge="5xx")
    found = await AccountStatements(ledger, Kept()).read(TOKEN, ALL._replace(limit=3))
    call, receipt = f"call_{'4' * 32}", f"rcpt_{'3' * 32}"
    assert found.lines == [
        StatementLine(START, "reversal", 2, OTHER, "/api/pro/x", "reversed", "5xx", None, None, None),
        StatementLine(START, "call", -1, call, "/api/pro/y", "posted", None, None, None, child.id),
        StatementLine(START, "call", -2, f"call_{'3' * 32}", "/api/pro/x", "posted", None, receipt, None, None),
    ]
    assert (found.credits, found.cursor) == (5, f"{4:016x}")


async def test_a_span_includes_its_beginning_and_not_its_end(ledger):
    statements, second = AccountStatements(ledger, None), timedelta(seconds=1)
    spans = ((START, START + second), (START - second, START), (START + second, None), (None, START + second))
    found = [await statements.read(TOKEN, ALL._replace(since=since, until=until)) for since, until in spans]
    assert [len(each.lines) for each in found] == [4, 0, 0, 4]
