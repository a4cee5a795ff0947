"""The payments of an account, with every state that its money can have, and nobody else's."""

import random

import pytest

from tests.money.chain.log_node import BLOCK_S, LogNode, served
from tests.money.chain.month import START, Month, scanner_of
from tests.money.purchases.parts import Server, desk
from tests.postgres import POSTGRES
from toolserver.money.chain.scanner import COLD_S
from toolserver.money.chain.sql_chain_transfers import AccountPayments
from toolserver.money.ledger.statements import StatementQuery
from toolserver.money.purchases.credit_price import ATOMIC

ALL = StatementQuery()


@pytest.mark.parametrize("kind", ["sqlite", POSTGRES])
async def test_an_account_sees_every_state_of_its_own_payments_and_no_others(tmp_path, kind):
    server, node = Server(), LogNode()
    node.height = START
    async with served(node) as url, desk(tmp_path, [server], kind=kind) as d:
        scanner, pool = scanner_of(d, url)
        m = Month(node, d, server, scanner, random.Random(0))
        own, others = await m.quote(), await m.quote()
        for address, usd in ((own, 5), (others, 6)):
            tx = m.pay(address, usd)
            m.pass_blocks(12)
            await m.confirm(address, tx, usd)
        m.pay(own, 7)
        m.pass_blocks(int(COLD_S / BLOCK_S / 2))
        await scanner.look()
        newest = m.pay(own, 3)
        await scanner.look()
        at = int(d.clock.time() * 1000)
        tokens = dict(await d.rows("SELECT amount, token FROM tx_credit"))
        payments = AccountPayments(d.ledger.file)
        found = await payments.list_own(tokens[5 * ATOMIC], ALL)
        assert [(each.amount / ATOMIC, each.way, each.state) for each in found] == [
            (3, "transfer", "pending"),
            (7, "transfer", "second"),
            (5, "transfer", "credited"),
        ]
        assert found[0].transaction == newest
        assert all(each.since >= each.at for each in found)
        assert [each.amount / ATOMIC for each in await payments.list_own(tokens[6 * ATOMIC], ALL)] == [6]
        since = StatementQuery(since=at - 1000 * BLOCK_S * 5)
        assert len(await payments.list_own(tokens[5 * ATOMIC], since)) == 1
        assert await payments.list_own("f" * 64, ALL) == []
        await pool.aclose()
