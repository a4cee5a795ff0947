"""Builds, from the settings, the service that takes payments by x402."""

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import anyio
import anyio.to_thread

from toolserver.calls.idempotency import Idempotency
from toolserver.calls.rate_limit import UnchargedLimit
from toolserver.calls.response_cache import ResponseCache
from toolserver.clock import Clock
from toolserver.core.http import Transport
from toolserver.core.metrics import Metrics
from toolserver.core.outbound import NO_PROXIES, Proxies
from toolserver.money.purchases.chain.rpc_pool import make_rpc_pool
from toolserver.money.purchases.credit_price import ATOMIC
from toolserver.money.purchases.matching import policy_of
from toolserver.money.purchases.quotes import make_ceilings
from toolserver.money.purchases.store import SqlPurchaseStore
from toolserver.money.receipts.service import ReceiptService
from toolserver.money.x402.exact import ExactScheme
from toolserver.money.x402.finality import PaymentFinality
from toolserver.money.x402.offers import X402Terms
from toolserver.money.x402.settlement import SettlementService, SettlementSweep
from toolserver.money.x402.store import SqlPaymentStore
from toolserver.money.x402.topup import Balances, Topups
from toolserver.money.x402.wire import FacilitatorDown
from toolserver.registry.registry import Operation
from toolserver.settings import PaymentSettings
from toolserver.settings import X402Settings as Settings
from toolserver.sql.group_commit import GroupCommit
from toolserver.sql.leases import LeasedTask

if TYPE_CHECKING:
    from toolserver.money.x402.chain_lookup import ChainLookup
    from toolserver.money.x402.facilitator import Facilitator

log = logging.getLogger(__name__)

LOOK_S = 30.0


@asynccontextmanager
async def open_x402(
    settings: Settings,
    payments: PaymentSettings,
    file: GroupCommit,
    *,
    clock: Clock,
    base_url: str,
    host: str,
    transport: Transport | None = None,
    proxies: Proxies = NO_PROXIES,
) -> AsyncIterator[SettlementService | None]:
    """Yield the service that takes x402 payments as the settings define, or None if they are off.

    `payments` names RPC servers of the chain, if any; `file` is the database of the ledger,
    and `transport` leads to the facilitator, by default over the network. Only the instance
    that holds the task of a watch looks at the chain.
    """
    if not settings.enabled:
        yield None
        return
    facilitator, lookup = await anyio.to_thread.run_sync(_make_clients, settings, payments, transport, proxies)
    servers, pay_to = make_rpc_pool(payments, clock, proxies), bytes.fromhex(str(settings.pay_to)[2:])
    watching = LeasedTask(file, "signed payments", clock)
    finality = None
    if payments.rpc_urls:
        store = SqlPaymentStore(file, watching)
        finality = PaymentFinality(
            store, servers, clock, policy_of(payments), pay_to=pay_to, wait_s=payments.wait_s, turn=watching
        )
    settling = SettlementService(
        SqlPaymentStore(file),
        facilitator,
        X402Terms(
            pay_to,
            settings.max_timeout_seconds,
            _find_most_usd(settings, payments) * ATOMIC,
            base_url,
            host,
            most_alone=_find_most_alone(payments),
            count_servers=lambda: len(servers),
        ),
        clock,
        lookup,
        finality=finality,
        ceilings=make_ceilings(payments, SqlPurchaseStore(file), clock),
    )
    try:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(_log_when_ready, facilitator, clock)
            tasks.start_soon(SettlementSweep(settling, lookup, LeasedTask(file, "settlement sweep", clock)).run)
            if finality is not None:
                tasks.start_soon(finality.run)
            yield settling
            tasks.cancel_scope.cancel()
    finally:
        with anyio.move_on_after(2, shield=True):
            await facilitator.aclose()
            await servers.aclose()
            if lookup is not None:
                await lookup.aclose()


def _make_clients(
    settings: Settings, payments: PaymentSettings, transport: Transport | None, proxies: Proxies
) -> "tuple[Facilitator, ChainLookup | None]":
    """Return the facilitator, and the lookup of payments on the chain if an RPC server is configured.

    No request is sent. The libraries of both take long to import, so this runs in a thread, and only if x402 is on.
    """
    from toolserver.money.x402.chain_lookup import ChainLookup
    from toolserver.money.x402.facilitator import Facilitator

    facilitator = Facilitator(
        str(settings.facilitator_url),
        token=settings.facilitator_token.get_secret_value() if settings.facilitator_token else None,
        verify_s=settings.verify_s,
        settle_s=settings.settle_s,
        transport=transport,
        proxies=proxies,
    )
    urls = [url.get_secret_value() for url in payments.rpc_urls]
    return facilitator, ChainLookup(urls, proxies) if urls else None


def _find_most_usd(settings: Settings, payments: PaymentSettings) -> int:
    """Return the largest top-up in USD: one that exceeds no ceiling, and that can be checked where no server is set."""
    bounds = [settings.most_usd]
    if payments.ceiling_purchase_usd is not None:
        bounds.append(payments.ceiling_purchase_usd)
    if not payments.rpc_urls:
        bounds.append(payments.safe_from_usd)
    return max(1, min(bounds))


def _find_most_alone(payments: PaymentSettings) -> int | None:
    """Return the largest top-up that one RPC server may check, in 0.000001 USDC, or None for any."""
    if not payments.rpc_urls or payments.agree_from_usd is None:
        return None
    return max(1, payments.agree_from_usd - 1) * ATOMIC


async def _log_when_ready(facilitator: "Facilitator", clock: Clock) -> None:
    """Check from the start whether the facilitator makes our kind of payment, and log the result."""
    while True:
        try:
            fits = await facilitator.supported()
        except FacilitatorDown as down:
            log.error("x402 payments cannot be made", extra={"reason": str(down)})
            await clock.sleep(LOOK_S)
            continue
        if fits:
            log.info("x402 payments are taken")
        else:
            log.error("the facilitator does not make exact payments on Base")
        return


def topups_of(
    settling: SettlementService | None, ledger: Balances, operation: Operation | None = None
) -> Topups | None:
    """Return the seller of credits for signed payments, or None if such payments are off. `operation` requests them."""
    if settling is None:
        return None
    return Topups(settling, ledger, operation)


def exact_of(
    settling: SettlementService | None,
    *,
    answers: ResponseCache,
    idempotency: Idempotency,
    metrics: Metrics,
    receipts: ReceiptService | None,
    uncharged: UnchargedLimit,
) -> ExactScheme | None:
    """Return the seller of single answers for signed payments, or None if such payments are off."""
    if settling is None:
        return None
    return ExactScheme(
        settling, answers=answers, idempotency=idempotency, metrics=metrics, receipts=receipts, uncharged=uncharged
    )
