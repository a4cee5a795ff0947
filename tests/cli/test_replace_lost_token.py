"""The end of a reissue: subscriptions go to the new token with the account, or nothing happens."""

from contextlib import closing

import pytest

from tests.calls.parts import RICH, START
from tests.calls.shop import shop
from tests.money.ledger.ledgers import token
from toolserver.cli.reissue import replace_lost_token
from toolserver.clock import ManualClock
from toolserver.core.caller import token_hash
from toolserver.money.ledger.allowance import AllowanceTerms
from toolserver.money.ledger.statements import StatementQuery
from toolserver.money.ledger.store import FILE, open_ledger
from toolserver.money.purchases.reissues import WAIT_MS, ReissueDraft, ReissueRefused
from toolserver.money.purchases.sql_refunds import SqlReissues
from toolserver.sql.sqlite import connect

OLD, NEW, CHILD = (token_hash(token(number)).hex() for number in (1, 2, 3))
COLUMNS = "id, owner, payer, account, endpoint, url, host, params, sealed, created_at, due_at, description, state"
COUNTS = "consecutive_failures, delivered_count, failed_count, slow"


async def test_subscriptions_of_the_token_and_of_its_allowances_go_to_the_new_one(tmp_path):
    clock = ManualClock(START)
    async with open_ledger(tmp_path / FILE, clock) as ledger:
        await ledger.mint(token(1), 10, cause="rich")
        for id, owner in (("wh_1", OLD), ("wh_2", CHILD)):
            row = f"'{id}', '{owner}', '{OLD}', 'a', 'e', 'u', 'h', x'00', x'00', 0, 0, '', 'active', 0, 0, 0, 0"
            sql = f"INSERT INTO webhook_subscription({COLUMNS}, {COUNTS}) VALUES ({row})"
            await ledger.file.alone(lambda db, sql=sql: db.execute(sql) and None)
        reissues = SqlReissues(ledger.file, clock)
        await reissues.add(ReissueDraft("ri_1", OLD, bytes(20), ledger.now()))
        await reissues.prove("ri_1")
        with pytest.raises(ReissueRefused):
            await replace_lost_token(ledger.file, "ri_1", NEW, ledger.now())
        assert owners(tmp_path) == [("wh_1", OLD, OLD), ("wh_2", CHILD, OLD)]
        await replace_lost_token(ledger.file, "ri_1", NEW, ledger.now() + WAIT_MS)
        assert owners(tmp_path) == [("wh_1", NEW, NEW), ("wh_2", CHILD, NEW)]


def owners(folder):
    with closing(connect(folder / FILE)) as db:
        return db.execute("SELECT id, owner, payer FROM webhook_subscription ORDER BY id").fetchall()


async def test_receipts_and_statement_of_the_lost_token_are_read_with_the_new_one_and_with_no_allowance(tmp_path):
    async with shop(tmp_path) as s:
        bought = await s.buy()
        await s.ledger.create_allowance(RICH, CHILD, AllowanceTerms("robot", 10))
        reissues, lost = SqlReissues(s.ledger.file, s.clock), token_hash(RICH).hex()
        await reissues.add(ReissueDraft("ri_1", lost, bytes(20), s.ledger.now()))
        await reissues.prove("ri_1")
        await replace_lost_token(s.ledger.file, "ri_1", NEW, s.ledger.now() + WAIT_MS)
        path = f"/api/receipt/{bought.headers['x-service-receipt-id']}"
        read = [(await s.buy(path, authorization=f"Bearer {token(number)}")).status_code for number in (2, 3, 4)]
        page = await s.ledger.statement(token(2), StatementQuery())
        assert read == [200, 404, 402]
        assert [entry.endpoint for entry in page.entries if entry.kind == "call"] == ["/api/pro/report"]
