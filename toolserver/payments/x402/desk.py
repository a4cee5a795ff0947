"""Payments by x402 as one thing, made from the settings. What it is made of is imported only where it is on."""

import importlib
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import anyio

from toolserver.clock import Clock
from toolserver.payments.cashier import OwnBooks
from toolserver.payments.units import ATOMIC
from toolserver.settings import X402 as Settings
from toolserver.settings import Payments

if TYPE_CHECKING:
    from toolserver.answers import Answers
    from toolserver.billing.receipts import Receipts
    from toolserver.idempotency import Idempotency
    from toolserver.metrics import Metrics
    from toolserver.payments.x402.exact import Exact
    from toolserver.payments.x402.facilitator import Facilitator
    from toolserver.payments.x402.settling import Settling
    from toolserver.payments.x402.topup import Balances, Topups

log = logging.getLogger(__name__)

LOOK_S = 30.0


@asynccontextmanager
async def opened_x402(
    settings: Settings, payments: Payments, *, ledger: OwnBooks, clock: Clock, base_url: str, host: str
) -> AsyncIterator["Settling | None"]:
    """What takes x402 payments as it is set up; None when it is off. `payments` names servers of the chain, if any."""
    if not settings.enabled:
        yield None
        return
    from toolserver.payments.x402.offers import Terms
    from toolserver.payments.x402.settling import Settling
    from toolserver.payments.x402.unsettled import Unsettled

    module: Any = await anyio.to_thread.run_sync(importlib.import_module, "toolserver.payments.x402.facilitator")
    token = settings.facilitator_token.get_secret_value() if settings.facilitator_token else None
    facilitator: Facilitator = module.Facilitator(
        str(settings.facilitator_url), token=token, verify_s=settings.verify_s, settle_s=settings.settle_s
    )
    witness: Any = None
    if payments.rpc_urls:
        chain: Any = await anyio.to_thread.run_sync(importlib.import_module, "toolserver.payments.x402.witness")
        witness = chain.ChainWitness([url.get_secret_value() for url in payments.rpc_urls])
    try:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(_told_when_open, facilitator, clock)
            pay_to = bytes.fromhex(str(settings.pay_to)[2:])
            terms = Terms(pay_to, settings.max_timeout_seconds, settings.most_usd * ATOMIC, base_url, host)
            settling = Settling(ledger.file, facilitator, terms, clock, witness)
            if witness is not None:
                tasks.start_soon(Unsettled(settling, witness).run)
            yield settling
            tasks.cancel_scope.cancel()
    finally:
        with anyio.move_on_after(2, shield=True):
            await facilitator.aclose()
            if witness is not None:
                await witness.aclose()


async def _told_when_open(facilitator: "Facilitator", clock: Clock) -> None:
    """Look from the start whether the facilitator makes such payments, and say so in the log."""
    from toolserver.payments.x402.facilitator import FacilitatorDown

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


def topups_of(settling: "Settling | None", ledger: "Balances") -> "Topups | None":
    """What sells credits for signed payments, where they are taken."""
    if settling is None:
        return None
    from toolserver.payments.x402.topup import Topups

    return Topups(settling, ledger)


def exact_of(
    settling: "Settling | None",
    *,
    answers: "Answers",
    idempotency: "Idempotency",
    metrics: "Metrics",
    receipts: "Receipts | None",
) -> "Exact | None":
    """What sells single answers for them."""
    if settling is None:
        return None
    from toolserver.payments.x402.exact import Exact

    return Exact(settling, answers=answers, idempotency=idempotency, metrics=metrics, receipts=receipts)
