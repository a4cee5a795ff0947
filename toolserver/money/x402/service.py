"""Builds, from the settings, the service that takes payments by x402. Its parts are imported only if it is on."""

import importlib
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import anyio

from toolserver.clock import Clock
from toolserver.core.credit_price import ATOMIC
from toolserver.settings import PaymentSettings
from toolserver.settings import X402Settings as Settings
from toolserver.sql.leased_task import LeasedTask, need_no_turn

if TYPE_CHECKING:
    from toolserver.calls.idempotency import Idempotency
    from toolserver.calls.rate_limit import UnchargedLimit
    from toolserver.calls.response_cache import ResponseCache
    from toolserver.core.metrics import Metrics
    from toolserver.money.purchases.ceilings import SalesRecord
    from toolserver.money.purchases.rpc_pool import RpcPool
    from toolserver.money.receipts.sign import Receipts
    from toolserver.money.x402.exact import ExactScheme
    from toolserver.money.x402.facilitator import Facilitator
    from toolserver.money.x402.finality import ConfirmationStore, PaymentFinality
    from toolserver.money.x402.offers import X402Terms
    from toolserver.money.x402.settlement import SettlementService
    from toolserver.money.x402.store import PaymentStore
    from toolserver.money.x402.topup import Balances, Topups

log = logging.getLogger(__name__)

LOOK_S = 30.0


@asynccontextmanager
async def open_x402(
    settings: Settings,
    payments: PaymentSettings,
    *,
    make_store: "Callable[..., PaymentStore]",
    make_confirmations: "Callable[..., ConfirmationStore]",
    make_review: "Callable[[], SalesRecord]",
    make_task: Callable[[str], LeasedTask | None] = need_no_turn,
    clock: Clock,
    base_url: str,
    host: str,
) -> AsyncIterator["SettlementService | None"]:
    """Yield the service that takes x402 payments as the settings define, or None if they are off.

    `payments` names RPC servers of the chain, if any. The stores are made only when x402 is on, that of confirmations
    with the task that `make_task` makes for a name: only the instance that holds this task watches the chain.
    """
    if not settings.enabled:
        yield None
        return
    from toolserver.money.purchases.service import make_ceilings, make_rpc_pool
    from toolserver.money.x402.settlement import SettlementService
    from toolserver.money.x402.settlement_sweep import SettlementSweep

    facilitator = await _make_facilitator(settings)
    servers, lookup = make_rpc_pool(payments, clock), await _make_lookup(payments)
    pay_to = bytes.fromhex(str(settings.pay_to)[2:])
    finality = _make_finality(payments, servers, make_confirmations, make_task("signed payments"), clock, pay_to)
    try:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(_log_when_ready, facilitator, clock)
            terms = _make_terms(settings, payments, pay_to, base_url, host)
            checks: dict[str, Any] = {"finality": finality, "ceilings": make_ceilings(payments, make_review(), clock)}
            settling = SettlementService(make_store(), facilitator, terms, clock, lookup, **checks)
            tasks.start_soon(SettlementSweep(settling, lookup, make_task("settlement sweep")).run)
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


async def _make_facilitator(settings: Settings) -> "Facilitator":
    """Return the facilitator of the settings, without a request to it."""
    module: Any = await anyio.to_thread.run_sync(importlib.import_module, "toolserver.money.x402.facilitator")
    token = settings.facilitator_token.get_secret_value() if settings.facilitator_token else None
    made: Facilitator = module.Facilitator(
        str(settings.facilitator_url), token=token, verify_s=settings.verify_s, settle_s=settings.settle_s
    )
    return made


async def _make_lookup(payments: PaymentSettings) -> Any:
    """Return the lookup of payments on the chain, or None if no RPC server is configured."""
    if not payments.rpc_urls:
        return None
    chain: Any = await anyio.to_thread.run_sync(importlib.import_module, "toolserver.money.x402.chain_lookup")
    return chain.ChainLookup([url.get_secret_value() for url in payments.rpc_urls])


def _make_finality(
    payments: PaymentSettings,
    servers: "RpcPool",
    make_store: "Callable[..., ConfirmationStore]",
    task: LeasedTask | None,
    clock: Clock,
    pay_to: bytes,
) -> "PaymentFinality | None":
    """Return the part that waits for the chain and watches it, or None if no RPC server is configured."""
    from toolserver.money.purchases.service import policy_of
    from toolserver.money.x402.finality import PaymentFinality

    if not payments.rpc_urls:
        return None
    shared: dict[str, Any] = {"pay_to": pay_to, "wait_s": payments.wait_s, "turn": task}
    return PaymentFinality(make_store(task), servers, clock, policy_of(payments), **shared)


def _make_terms(settings: Settings, payments: PaymentSettings, pay_to: bytes, base_url: str, host: str) -> "X402Terms":
    """Return the terms of payment that the settings define."""
    from toolserver.money.x402.offers import X402Terms

    most = _find_most_usd(settings, payments) * ATOMIC
    return X402Terms(pay_to, settings.max_timeout_seconds, most, base_url, host)


def _find_most_usd(settings: Settings, payments: PaymentSettings) -> int:
    """Return the largest top-up in USD: one that can be checked as its amount requires and exceeds no ceiling."""
    bounds = [settings.most_usd]
    if payments.ceiling_purchase_usd is not None:
        bounds.append(payments.ceiling_purchase_usd)
    if not payments.rpc_urls:
        bounds.append(payments.safe_from_usd)
    elif len(payments.rpc_urls) == 1 and payments.agree_from_usd is not None:
        bounds.append(payments.agree_from_usd - 1)
    return max(1, min(bounds))


async def _log_when_ready(facilitator: "Facilitator", clock: Clock) -> None:
    """Check from the start whether the facilitator makes our kind of payment, and log the result."""
    from toolserver.money.x402.facilitator import FacilitatorDown

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


def topups_of(settling: "SettlementService | None", ledger: "Balances") -> "Topups | None":
    """Return the seller of credits for signed payments, or None if such payments are off."""
    if settling is None:
        return None
    from toolserver.money.x402.topup import Topups

    return Topups(settling, ledger)


def exact_of(
    settling: "SettlementService | None",
    *,
    answers: "ResponseCache",
    idempotency: "Idempotency",
    metrics: "Metrics",
    receipts: "Receipts | None",
    uncharged: "UnchargedLimit",
) -> "ExactScheme | None":
    """Return the seller of single answers for signed payments, or None if such payments are off."""
    if settling is None:
        return None
    from toolserver.money.x402.exact import ExactScheme

    return ExactScheme(
        settling, answers=answers, idempotency=idempotency, metrics=metrics, receipts=receipts, uncharged=uncharged
    )
