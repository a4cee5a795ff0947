"""Builds, from the settings, the service that sells credits: quotes, confirmations and balances."""

import importlib
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from decimal import Decimal
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

import anyio

from toolserver.clock import Clock
from toolserver.core.credit_sales import Balance, Claim, CreditedPurchase, CreditSales, NoCreditSales, PurchaseQuote
from toolserver.errors import RevokedToken
from toolserver.money.ledger.operations import AccountStanding, Who
from toolserver.settings import PaymentSettings as Settings
from toolserver.sql.leased_task import LeasedTask, need_no_turn

if TYPE_CHECKING:
    from toolserver.money.purchases.ceilings import SalesCeilings, SalesRecord
    from toolserver.money.purchases.confirm import Confirmations, Rules
    from toolserver.money.purchases.deposit_search import DepositSearch
    from toolserver.money.purchases.policy import Policy
    from toolserver.money.purchases.quotes import Quotes, QuoteTerms
    from toolserver.money.purchases.reissues import WaitingReissues
    from toolserver.money.purchases.rpc_pool import ChainServers, RpcPool, RpcServer
    from toolserver.money.purchases.sql_review import SqlReview
    from toolserver.money.purchases.store import PurchaseStore
    from toolserver.sql.high_water import HighWater

log = logging.getLogger(__name__)

LOOK_S = 30.0


class AccountReader(Protocol):
    """A ledger that returns the state of a token's account."""

    async def standing(self, who: Who) -> AccountStanding:
        """Return the state of a token's account. Raises invalid_token."""
        ...


class ClosedPurchases(NoCreditSales):
    """Sells nothing, and only returns the balance of a token."""

    def __init__(self, ledger: AccountReader, reissues: "WaitingReissues | None" = None) -> None:
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
        *,
        quotes: "Quotes",
        confirmations: "Confirmations",
        search: "DepositSearch",
        ready: Callable[[], Awaitable[None]],
        count_servers: "Callable[[], ChainServers]",
        reissues: "WaitingReissues | None" = None,
    ) -> None:
        super().__init__(ledger, reissues)
        self.count_servers = count_servers
        self._quotes, self._confirmations, self._search, self._ready = quotes, confirmations, search, ready

    async def quote(self, amount_usd: Decimal, *, challenge: str | None = None) -> PurchaseQuote:
        await self._ready()
        return await self._quotes.make(amount_usd, challenge)

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
    *,
    ledger: AccountReader,
    make_store: "Callable[..., PurchaseStore]",
    make_review: "Callable[..., SqlReview]",
    make_task: Callable[[str], LeasedTask | None] = need_no_turn,
    clock: Clock,
    host: str,
    marks: "HighWater | None" = None,
    reissues: "WaitingReissues | None" = None,
) -> AsyncIterator[CreditSales]:
    """Yield the seller of credits that the settings define. It watches credited payments for reorganisations.

    `make_store` and `make_review` are called only when purchases are on. Called with a task (which `make_task` makes
    for a name), they return a store that only writes while this instance holds that task. `host` is part of the text
    that payers sign; `marks` remembers which deposit addresses were given out; `reissues` are shown with balances.

    Raises:
        NotAnAccountKey: `settings.xpub` is not an extended public key of an account.
    """
    if not settings.enabled:
        yield ClosedPurchases(ledger, reissues)
        return
    from toolserver.money.purchases.confirm import Confirmations
    from toolserver.money.purchases.deposit_search import DepositSearch
    from toolserver.money.purchases.quotes import Quotes

    terms, rules = terms_of(settings), rules_of(settings, host)
    chain, store = make_rpc_pool(settings, clock), make_store()
    ceilings = make_ceilings(settings, make_review(), clock)
    confirmations = Confirmations(store, chain, clock, rules, ceilings)
    quotes = Quotes(store, clock, terms, ceilings, marks)
    try:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(_log_when_ready, chain, clock)
            for watch in _make_watches(chain, clock, rules.policy, make_store, make_review, make_task):
                tasks.start_soon(watch)
            shared: dict[str, Any] = {"ready": partial(_ready, chain), "count_servers": chain.count_servers}
            shared |= {"search": DepositSearch(store, chain), "reissues": reissues}
            yield PurchaseService(ledger, quotes=quotes, confirmations=confirmations, **shared)
            tasks.cancel_scope.cancel()
    finally:
        with anyio.move_on_after(2, shield=True):
            await chain.aclose()


def _make_watches(
    chain: "RpcPool",
    clock: Clock,
    policy: "Policy",
    make_store: "Callable[..., PurchaseStore]",
    make_review: "Callable[..., SqlReview]",
    make_task: Callable[[str], LeasedTask | None],
) -> Iterator[Callable[[], Coroutine[Any, Any, None]]]:
    """Yield the loops that watch credited payments. Each works only on the instance that holds its task."""
    from toolserver.money.purchases.agreement_watch import AgreementWatch
    from toolserver.money.purchases.reorg_watch import ReorgWatch

    reorgs, agreement = make_task("reorg watch"), make_task("agreement watch")
    yield ReorgWatch(make_store(reorgs), chain, clock, policy, reorgs).run
    yield AgreementWatch(make_review(agreement), chain, clock, agreement).run


def terms_of(settings: Settings) -> "QuoteTerms":
    """Return the terms of quotes that the settings define. Raises NotAnAccountKey."""
    from toolserver.core.credit_price import ATOMIC
    from toolserver.money.purchases.deposit import DepositKey
    from toolserver.money.purchases.quotes import QuoteTerms

    alone = len(settings.rpc_urls) < 2 and settings.agree_from_usd is not None
    most = (settings.agree_from_usd or 0) * ATOMIC - 1 if alone else None
    life_s = settings.quote_minutes * 60
    if settings.binding == "shared_wallet":
        shared = bytes.fromhex((settings.shared_wallet or "")[2:])
        return QuoteTerms(shared, life_s, most=most, per_minute=settings.quotes_per_minute)
    key = DepositKey(settings.xpub.get_secret_value() if settings.xpub else "")
    return QuoteTerms(key.address, life_s, settings.first_index, most, settings.quotes_per_minute)


def rules_of(settings: Settings, host: str) -> "Rules":
    """Return the rules for claims that the settings define."""
    from toolserver.money.purchases.confirm import Rules

    return Rules(
        policy_of(settings),
        shared=settings.binding == "shared_wallet",
        host=host,
        grace_s=settings.grace_minutes * 60,
        credit_late=settings.late == "credit",
        wait_s=settings.wait_s,
    )


def policy_of(settings: Settings) -> "Policy":
    """Return the policy that the settings define: what a payment needs by its amount."""
    from toolserver.core.credit_price import ATOMIC
    from toolserver.money.purchases.policy import Policy

    agree = settings.agree_from_usd
    return Policy(
        settings.confirmations,
        settings.safe_from_usd * ATOMIC,
        settings.finalized_from_usd * ATOMIC,
        None if agree is None else agree * ATOMIC,
    )


def make_ceilings(settings: Settings, record: "SalesRecord", clock: Clock) -> "SalesCeilings":
    """Return the ceilings that the settings define: how much is sold without a person's approval."""
    from toolserver.core.credit_price import ATOMIC
    from toolserver.money.purchases.ceilings import Ceilings, SalesCeilings

    usd = (settings.ceiling_purchase_usd, settings.ceiling_hour_usd, settings.ceiling_day_usd)
    return SalesCeilings(Ceilings(*(None if each is None else each * ATOMIC for each in usd)), record, clock)


def make_rpc_pool(settings: Settings, clock: Clock) -> "RpcPool":
    """Return the RPC servers of the settings, without a request to any of them."""
    from toolserver.money.purchases.rpc_pool import RpcPool

    return RpcPool([partial(_node, url.get_secret_value()) for url in settings.rpc_urls], monotonic=clock.monotonic)


def _node(url: str) -> "RpcServer":
    """Return a server. This imports web3, which takes long, so it is called only when the server is first used."""
    chain: Any = importlib.import_module("toolserver.money.purchases.chain")
    node: RpcServer = chain.ChainNode(url)
    return node


async def _ready(chain: "RpcPool") -> None:
    """Raise ChainUnavailable if no server answers: nothing is offered while a payment could not be seen."""
    from toolserver.money.purchases.confirm import unavailable
    from toolserver.money.purchases.rpc_pool import ChainDown

    try:
        await chain.check_ready()
    except ChainDown:
        raise unavailable("The chain cannot be read at the moment, so no credits are sold.") from None


async def _log_when_ready(chain: "RpcPool", clock: Clock) -> None:
    """Check from the start whether the RPC servers are the right ones, log the result, and return once one is."""
    from toolserver.money.purchases.rpc_pool import ChainDown

    while True:
        try:
            await chain.check_ready()
        except ChainDown as down:
            log.error("credits cannot be sold", extra={"reason": str(down)})
            await clock.sleep(LOOK_S)
            continue
        log.info("credits can be bought", extra={"servers": len(chain)})
        return
