"""The desk where credits are bought: quotes, confirmations and balances as one thing, made from the settings."""

import importlib
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from decimal import Decimal
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

import anyio

from toolserver.billing.rules import Standing, Who
from toolserver.clock import Clock
from toolserver.errors import PaymentRequired
from toolserver.payments.offers import Balance, Bought, Claim, Payments, Quote, Unsold
from toolserver.settings import Payments as Settings
from toolserver.storage.durable import Durable

if TYPE_CHECKING:
    from toolserver.payments.confirm import Confirmations, Rules
    from toolserver.payments.quotes import Quotes, Terms
    from toolserver.payments.servers import Server, Servers

log = logging.getLogger(__name__)

LOOK_S = 30.0


class Books(Protocol):
    """A ledger that says how a token stands."""

    async def standing(self, who: Who) -> Standing:
        """Raises invalid_token."""
        ...


class OwnBooks(Books, Protocol):
    """A ledger in a file of ours."""

    file: Durable


class Closed(Unsold):
    """Where nothing is sold, but balances are told."""

    def __init__(self, ledger: Books) -> None:
        self._ledger = ledger

    async def balance(self, token: str) -> Balance:
        found = await self._ledger.standing(token)
        if found.revoked is not None:
            raise PaymentRequired("expired", "The token was revoked.")
        return Balance(found.credits, datetime.fromtimestamp(int(found.issued_at), UTC))


class Cashier(Closed):
    """Sells credits."""

    def __init__(
        self,
        ledger: Books,
        *,
        quotes: "Quotes",
        confirmations: "Confirmations",
        ready: Callable[[], Awaitable[None]],
    ) -> None:
        super().__init__(ledger)
        self._quotes, self._confirmations, self._ready = quotes, confirmations, ready

    async def quote(self, amount_usd: Decimal, *, challenge: str | None = None) -> Quote:
        await self._ready()
        return await self._quotes.make(amount_usd, challenge)

    async def confirm(self, claim: Claim) -> Bought:
        return await self._confirmations.confirm(claim)

    async def balance(self, token: str) -> Balance:
        await self._confirmations.has_token(token)
        return await super().balance(token)


@asynccontextmanager
async def opened_payments(settings: Settings, *, ledger: OwnBooks, clock: Clock, host: str) -> AsyncIterator[Payments]:
    """The desk as it is set up; while it is open, what was credited is watched. `host` stands in what payers sign.

    Raises:
        NotAnAccountKey: `settings.xpub` is something else.
    """
    if not settings.enabled:
        yield Closed(ledger)
        return
    from toolserver.payments.confirm import Confirmations
    from toolserver.payments.quotes import Quotes
    from toolserver.payments.watch import Watch

    terms, rules = terms_of(settings), rules_of(settings, host)
    chain = _servers(settings, clock)
    confirmations = Confirmations(ledger.file, chain, clock, rules)
    quotes = Quotes(ledger.file, clock, terms)
    try:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(_told_when_open, chain, clock)
            tasks.start_soon(Watch(ledger.file, chain, clock, rules.policy).run)
            yield Cashier(ledger, quotes=quotes, confirmations=confirmations, ready=partial(_ready, chain))
            tasks.cancel_scope.cancel()
    finally:
        with anyio.move_on_after(2, shield=True):
            await chain.aclose()


def terms_of(settings: Settings) -> "Terms":
    """What quotes say, by the settings. Raises NotAnAccountKey."""
    from toolserver.payments.deposit import DepositKey
    from toolserver.payments.quotes import Terms
    from toolserver.payments.units import ATOMIC

    alone = len(settings.rpc_urls) < 2 and settings.agree_from_usd is not None
    most = (settings.agree_from_usd or 0) * ATOMIC - 1 if alone else None
    life_s = settings.quote_minutes * 60
    if settings.binding == "shared_wallet":
        return Terms(bytes.fromhex((settings.shared_wallet or "")[2:]), life_s, most=most)
    key = DepositKey(settings.xpub.get_secret_value() if settings.xpub else "")
    return Terms(key.address, life_s, settings.first_index, most)


def rules_of(settings: Settings, host: str) -> "Rules":
    """How claims are judged, by the settings."""
    from toolserver.payments.confirm import Rules
    from toolserver.payments.policy import Policy
    from toolserver.payments.units import ATOMIC

    agree = settings.agree_from_usd
    policy = Policy(
        settings.confirmations,
        settings.safe_from_usd * ATOMIC,
        settings.finalized_from_usd * ATOMIC,
        None if agree is None else agree * ATOMIC,
    )
    return Rules(
        policy,
        shared=settings.binding == "shared_wallet",
        host=host,
        grace_s=settings.grace_minutes * 60,
        credit_late=settings.late == "credit",
        wait_s=settings.wait_s,
    )


def _servers(settings: Settings, clock: Clock) -> "Servers":
    from toolserver.payments.servers import Servers

    return Servers([partial(_node, url.get_secret_value()) for url in settings.rpc_urls], monotonic=clock.monotonic)


def _node(url: str) -> "Server":
    """A server, connected by web3, which takes its time to be imported: only when it is first asked."""
    chain: Any = importlib.import_module("toolserver.payments.chain")
    node: Server = chain.Node(url)
    return node


async def _ready(chain: "Servers") -> None:
    """Nothing is offered while nobody could say whether it was paid. Raises ChainUnavailable."""
    from toolserver.payments.confirm import unavailable
    from toolserver.payments.servers import ChainDown

    try:
        await chain.ready()
    except ChainDown:
        raise unavailable("The chain cannot be read at the moment, so no credits are sold.") from None


async def _told_when_open(chain: "Servers", clock: Clock) -> None:
    """Look from the start whether the servers are the right ones, and say so in the log."""
    from toolserver.payments.servers import ChainDown

    while True:
        try:
            await chain.ready()
        except ChainDown as down:
            log.error("credits cannot be sold", extra={"reason": str(down)})
            await clock.sleep(LOOK_S)
            continue
        log.info("credits can be bought", extra={"servers": len(chain)})
        return


async def sweep_plan(settings: Settings, *, ledger: OwnBooks, clock: Clock, to: str, least_usd: int = 1) -> Any:
    """What has to be signed offline to collect every deposit of at least so much: see `sweep_plan.plan`.

    Raises:
        ValueError: there is no account key, or `to` is no address.
        ChainDown: no server answers.
    """
    from toolserver.payments import books, sweep_plan
    from toolserver.payments.deposit import DepositKey, address_from
    from toolserver.payments.units import ATOMIC

    collector = address_from(to)
    if settings.xpub is None:
        raise ValueError("there is nothing to collect without payments.xpub, which deposit addresses come from")
    key = DepositKey(settings.xpub.get_secret_value())
    chain = _servers(settings, clock)
    try:
        await chain.ready()
        known = await ledger.file.read(books.deposits)
        deposits = await sweep_plan.funded(known, chain.balance, least=least_usd * ATOMIC)
    finally:
        await chain.aclose()
    return sweep_plan.plan(deposits, collector, key, now=int(clock.time()))
