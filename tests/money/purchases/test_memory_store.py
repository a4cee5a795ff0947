"""Quotes, claims and reorganisations over the store in memory: nothing of a purchase needs a database."""

from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal

import pytest

from tests.money.purchases.parts import KEY, NOW, TX, Server, address_of, block_hash, paid
from toolserver.clock import ManualClock
from toolserver.core.credit_sales import Claim
from toolserver.errors import PaymentRequired
from toolserver.money.ledger.memory import MemoryLedger
from toolserver.money.purchases.chain.reorg_watch import ReorgWatch
from toolserver.money.purchases.chain.rpc_pool import RpcPool
from toolserver.money.purchases.confirm import Confirmations, Rules
from toolserver.money.purchases.memory_store import MemoryPurchaseStore
from toolserver.money.purchases.quotes import Quotes, QuoteTerms


@dataclass
class Sales:
    """What sells credits, without a file."""

    ledger: MemoryLedger
    server: Server
    clock: ManualClock
    quotes: Quotes
    confirmations: Confirmations
    watch: ReorgWatch
    store: MemoryPurchaseStore


@pytest.fixture
def sales() -> Sales:
    clock, server, rules = ManualClock(datetime.fromtimestamp(NOW, UTC)), Server(), Rules(wait_s=0)
    ledger = MemoryLedger(clock)
    store, chain = MemoryPurchaseStore(ledger.books), RpcPool([lambda: server], monotonic=clock.monotonic)
    return Sales(
        ledger,
        server,
        clock,
        Quotes(store, clock, QuoteTerms(KEY.address)),
        Confirmations(store, chain, clock, rules),
        ReorgWatch(store, chain, clock, rules.policy),
        store,
    )


async def test_a_purchase_is_quoted_paid_claimed_and_claimed_again(sales):
    quote = await sales.quotes.make(Decimal(5))
    sales.server.sees(paid(address_of(quote), 5))
    bought = await sales.confirmations.confirm(Claim(f"0x{TX.hex()}", quote.memo))
    assert await sales.ledger.balance(bought.token) == 250
    assert await sales.confirmations.confirm(Claim(TX.hex(), quote.memo)) == bought
    assert (await sales.quotes.make(Decimal(5))).wallet != quote.wallet


async def test_a_payment_that_the_chain_undoes_is_taken_back(sales):
    quote = await sales.quotes.make(Decimal(5))
    sales.server.sees(paid(address_of(quote), 5))
    bought = await sales.confirmations.confirm(Claim(TX.hex(), quote.memo))
    sales.server.seen.clear()
    sales.server.blocks[100] = block_hash(100, "fork")
    await sales.watch.look()
    assert await sales.ledger.balance(bought.token) == 250  # one look is not enough
    sales.clock.advance(60)
    await sales.watch.look()
    with pytest.raises(PaymentRequired):
        await sales.ledger.balance(bought.token)
    assert [case.kind for case in await sales.store.list_cases()] == ["undone"]
