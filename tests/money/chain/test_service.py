"""The scanner beside a service: made by the settings, one at a time, and off where there is nothing to read."""

import anyio
import pytest

from tests.money.chain.log_node import LogNode, served
from tests.money.chain.month import START
from tests.money.chain.parts import WALLET
from tests.money.purchases.parts import Server, desk
from tests.money.purchases.wallet import XPUB
from toolserver.money.chain.service import TASK, book_rules_of, open_chain_scanner
from toolserver.settings import PaymentSettings, X402Settings

OFF = X402Settings()
X402 = X402Settings(enabled=True, facilitator_url="https://f.test", pay_to=f"0x{WALLET.hex()}")


def selling(url: str, **changed) -> PaymentSettings:
    return PaymentSettings(enabled=True, rpc_urls=[url], xpub=XPUB, **changed)


def test_wallets_are_those_of_x402_and_of_shared_purchases():
    assert book_rules_of(selling("http://a.test"), OFF).wallets == frozenset()
    shared = PaymentSettings(binding="shared_wallet", shared_wallet="0x" + "12" * 20, grace_minutes=3)
    rules = book_rules_of(shared, X402)
    assert (rules.wallets, rules.grace_ms) == ({WALLET, bytes([0x12]) * 20}, 180_000)


@pytest.mark.parametrize(
    ("payments", "x402"),
    [(selling("http://a.test", scan=False), X402), (PaymentSettings(rpc_urls=["http://a.test"]), OFF)],
)
async def test_nothing_is_read_where_it_is_off_or_nothing_is_sold(tmp_path, payments, x402):
    async with desk(tmp_path, [Server()]) as d:
        async with open_chain_scanner(payments, x402, d.ledger.file, clock=d.clock) as scanner:
            assert scanner is None


async def test_it_reads_while_the_service_runs(tmp_path):
    node = LogNode()
    node.height = START
    async with served(node) as url, desk(tmp_path, [Server()]) as d:
        quote = await d.quote()
        node.mine(("0x" + "ab" * 32, "0x" + "5a" * 20, quote.wallet.lower(), 5_000_000))
        node.height += 30
        async with open_chain_scanner(selling(url), OFF, d.ledger.file, clock=d.clock) as scanner:
            assert scanner is not None
            for _ in range(1000):
                if await d.rows("SELECT 1 FROM chain_transfer") and scanner.measure()[0]:
                    break
                await anyio.sleep(0.02)
        assert await d.rows("SELECT state FROM chain_transfer") == [("quoted",)]
        block, _, differences, is_failing = scanner.measure()
        assert (block > START, differences, is_failing) == (True, 0, False)
    assert TASK == "chain book"
