"""Builds, from the settings, the service that sells credits: quotes, confirmations and balances."""

import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from decimal import Decimal
from functools import partial
from typing import Protocol

import anyio

from toolserver.clock import Clock
from toolserver.errors import NotFound, RevokedToken
from toolserver.money.ledger.operations import AccountStanding, Who
from toolserver.money.purchases.ceilings import make_ceilings
from toolserver.money.purchases.chain.reorg_watch import AgreementWatch, ReorgWatch
from toolserver.money.purchases.chain.rpc_pool import ChainDown, RpcPool, make_rpc_pool
from toolserver.money.purchases.confirm import Confirmations, Rules, unavailable
from toolserver.money.purchases.credit_price import ATOMIC
from toolserver.money.purchases.credit_sales import (
    Balance,
    ChainServers,
    Claim,
    CreditedPurchase,
    CreditSales,
    NoCreditSales,
    PurchaseQuote,
)
from toolserver.money.purchases.deposit import DepositKey
from toolserver.money.purchases.policy import policy_of
from toolserver.money.purchases.quotes import MEMO, Quotes, QuoteTerms, invalid, memo_hash
from toolserver.money.purchases.sql_refunds import SqlReissues
from toolserver.money.purchases.sql_review import SqlReview
from toolserver.money.purchases.store import SqlPurchaseStore
from toolserver.settings import PaymentSettings as Settings
from toolserver.sql.group_commit import GroupCommit
from toolserver.sql.high_water import HighWater
from toolserver.sql.leases import LeasedTask

log = logging.getLogger(__name__)

LOOK_S = 30.0


class AccountReader(Protocol):
    """A ledger that returns the state of a token's account."""

    async def standing(self, who: Who) -> AccountStanding:
        """Return the state of a token's account. Raises invalid_token."""
        ...


class ClosedPurchases(NoCreditSales):
    """Sells nothing, and only returns the balance of a token."""

    def __init__(self, ledger: AccountReader, reissues: SqlReissues | None = None) -> None:
        self._ledger, self._reissues = ledger, reissues

    async def balance(self, token: str) -> Balance:
        account = await self._find_valid(token)
        due = None
        if self._reissues is not None and account.allowance is None:
            due = await self._reissues.find_due(account.payer)
        reissue_at = None if due is None else datetime.fromtimestamp(due // 1000, UTC)
        return Balance(account.credits, datetime.fromtimestamp(int(account.issued_at), UTC), reissue_at)

    async def cancel_reissue(self, token: str) -> bool:
        account = await self._find_valid(token)
        if self._reissues is None or account.allowance is not None:
            return False
        return await self._reissues.cancel_own(account.payer)

    async def _find_valid(self, token: str) -> AccountStanding:
        account = await self._ledger.standing(token)
        if account.revoked is not None:
            raise RevokedToken(f"The {'token' if account.allowance is None else 'allowance'} was revoked or expired.")
        return account


class PurchaseService(ClosedPurchases):
    """Sells credits."""

    def __init__(
        self,
        ledger: AccountReader,
        reissues: SqlReissues | None,
        *,
        quotes: Quotes,
        confirmations: Confirmations,
        search: "DepositSearch",
        ready: Callable[[], Awaitable[None]],
        count_servers: Callable[[], ChainServers],
    ) -> None:
        super().__init__(ledger, reissues)
        self._count_servers = count_servers
        self._quotes, self._confirmations, self._search, self._ready = quotes, confirmations, search, ready

    async def quote(self, amount_usd: Decimal, *, challenge: str | None = None) -> PurchaseQuote:
        await self._ready()
        return await self._quotes.make(amount_usd, challenge)

    def count_servers(self) -> ChainServers:
        return self._count_servers()

    async def confirm(self, claim: Claim) -> CreditedPurchase:
        return await self._confirmations.confirm(claim)

    async def find_payment(self, memo: str) -> str | None:
        return await self._search.find(memo)

    async def balance(self, token: str) -> Balance:
        await self._confirmations.has_token(token)
        return await super().balance(token)


@asynccontextmanager
async def open_purchases(
    settings: Settings,
    file: GroupCommit,
    *,
    ledger: AccountReader,
    clock: Clock,
    host: str,
    marks: HighWater | None = None,
) -> AsyncIterator[CreditSales]:
    """Yield the seller of credits that the settings define. It watches credited payments for reorganisations.

    `file` is the database of the ledger. `host` is part of the text that payers sign; `marks` remembers which deposit
    addresses were given out. Each watch works only on the instance that holds its task.

    Raises:
        NotAnAccountKey: `settings.xpub` is not an extended public key of an account.
    """
    reissues = SqlReissues(file, clock)
    if not settings.enabled:
        yield ClosedPurchases(ledger, reissues)
        return
    terms, rules = terms_of(settings), rules_of(settings, host)
    chain, store = make_rpc_pool(settings, clock), SqlPurchaseStore(file)
    ceilings = make_ceilings(settings, SqlReview(file), clock)
    reorgs, agreement = (LeasedTask(file, name, clock) for name in ("reorg watch", "agreement watch"))
    reorg_watch = ReorgWatch(SqlPurchaseStore(file, reorgs), chain, clock, rules.policy, reorgs)
    agreement_watch = AgreementWatch(SqlReview(file, agreement), chain, clock, agreement)
    try:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(_log_when_ready, chain, clock)
            tasks.start_soon(reorg_watch.run)
            tasks.start_soon(agreement_watch.run)
            yield PurchaseService(
                ledger,
                reissues,
                quotes=Quotes(store, clock, terms, ceilings, marks),
                confirmations=Confirmations(store, chain, clock, rules, ceilings),
                search=DepositSearch(store, chain),
                ready=partial(_require_ready, chain),
                count_servers=chain.count_servers,
            )
            tasks.cancel_scope.cancel()
    finally:
        with anyio.move_on_after(2, shield=True):
            await chain.aclose()


def terms_of(settings: Settings) -> QuoteTerms:
    """Return the terms of quotes that the settings define. Raises NotAnAccountKey."""
    alone = len(settings.rpc_urls) < 2 and settings.agree_from_usd is not None
    if settings.binding == "shared_wallet":
        wallet: Callable[[int], bytes] | bytes = bytes.fromhex((settings.shared_wallet or "")[2:])
    else:
        wallet = DepositKey(settings.xpub.get_secret_value() if settings.xpub else "").address
    return QuoteTerms(
        wallet,
        life_s=settings.quote_minutes * 60,
        first_index=settings.first_index,
        most=(settings.agree_from_usd or 0) * ATOMIC - 1 if alone else None,
        per_minute=settings.quotes_per_minute,
    )


def rules_of(settings: Settings, host: str) -> Rules:
    """Return the rules for claims that the settings define."""
    return Rules(
        policy_of(settings),
        shared=settings.binding == "shared_wallet",
        host=host,
        grace_s=settings.grace_minutes * 60,
        credit_late=settings.late == "credit",
        wait_s=settings.wait_s,
    )


async def _require_ready(chain: RpcPool) -> None:
    """Raise ChainUnavailable if no server answers: nothing is offered while a payment could not be seen."""
    try:
        await chain.check_ready()
    except ChainDown:
        raise unavailable("The chain cannot be read at the moment, so no credits are sold.") from None


async def _log_when_ready(chain: RpcPool, clock: Clock) -> None:
    """Check from the start whether the RPC servers are the right ones, log the result, and return once one is."""
    while True:
        try:
            await chain.check_ready()
        except ChainDown as down:
            log.error("credits cannot be sold", extra={"reason": str(down)})
            await clock.sleep(LOOK_S)
            continue
        log.info("credits can be bought", extra={"servers": len(chain)})
        return


class DepositSearch:
    """Looks for transfers to the addresses of purchases."""

    def __init__(self, store: SqlPurchaseStore, chain: RpcPool) -> None:
        self._store, self._chain = store, chain

    async def find(self, memo: str) -> str | None:
        """Return the hash of the first transaction that paid a purchase, or None while there is none. Return None also
        where all purchases share one address: only the buyer can say which payment is for which purchase.

        Raises:
            InvalidArguments, NotFound: there is no purchase with this memo.
            ChainUnavailable: no server of the chain answers.
        """
        if not MEMO.fullmatch(memo):
            raise invalid("nonce", "must be the memo of a quote: svc_buy_ and 32 hexadecimal digits")
        purchase = await self._store.find_purchase(memo_hash(memo))
        if purchase is None:
            raise NotFound("There is no purchase with this memo.")
        if purchase.hd_index is None:
            return None
        if (credit := await self._store.find_credit(purchase.id)) is not None:
            return f"0x{credit.tx_hash.hex()}"
        try:
            tx_hash = await self._chain.find_transfer(purchase.address, purchase.created_at // 1000)
        except ChainDown:
            raise unavailable() from None
        return None if tx_hash is None else f"0x{tx_hash.hex()}"
