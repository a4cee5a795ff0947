"""Makes the scanner of the chain that the settings define, and runs it beside a service."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio

from toolserver.clock import Clock
from toolserver.core.outbound import NO_PROXIES, Proxies
from toolserver.money.chain.scanner import ChainScanner, ScanTerms
from toolserver.money.chain.sql_chain_book import BookRules, SqlChainBook
from toolserver.money.purchases.chain.rpc_pool import make_rpc_pool
from toolserver.money.purchases.matching import policy_of
from toolserver.settings import PaymentSettings, X402Settings
from toolserver.sql.group_commit import GroupCommit
from toolserver.sql.leases import LeasedTask

TASK = "chain book"


def book_rules_of(payments: PaymentSettings, x402: X402Settings) -> BookRules:
    """Return the rules of the book that the settings define. The wallets are the shared one, and that of x402."""
    wallets = (payments.shared_wallet if payments.binding == "shared_wallet" else None, x402.pay_to)
    addresses = frozenset(bytes.fromhex(wallet[2:]) for wallet in wallets if wallet is not None)
    return BookRules(policy_of(payments), payments.grace_minutes * 60_000, addresses)


@asynccontextmanager
async def open_chain_scanner(
    payments: PaymentSettings,
    x402: X402Settings,
    file: GroupCommit,
    *,
    clock: Clock,
    proxies: Proxies = NO_PROXIES,
) -> AsyncIterator[ChainScanner | None]:
    """Yield the scanner that the settings define, which reads while the block runs; None if there is nothing to read.

    It has connections of its own, so that a server that refuses a long search is not left alone by sales.
    """
    if not payments.scan or not payments.rpc_urls or not (payments.enabled or x402.enabled):
        yield None
        return
    task, rules = LeasedTask(file, TASK, clock), book_rules_of(payments, x402)
    chain = make_rpc_pool(payments, clock, proxies, patient=True)
    terms = ScanTerms(payments.log_addresses, payments.log_blocks)
    scanner = ChainScanner(SqlChainBook(file, rules, task), chain, clock, rules, terms, task)
    try:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(scanner.run)
            yield scanner
            tasks.cancel_scope.cancel()
    finally:
        with anyio.move_on_after(2, shield=True):
            await chain.aclose()
