"""Limits how much is sold without a person's approval: in one purchase, an hour and a day, by transfers and signed
payments (x402) together.
"""

import logging
from dataclasses import dataclass

from toolserver.clock import Clock
from toolserver.errors import PaymentPending, SalesCeilingReached
from toolserver.money.purchases.credit_price import ATOMIC
from toolserver.money.purchases.store import SqlPurchaseStore
from toolserver.settings import PaymentSettings

log = logging.getLogger(__name__)

HOUR_S, DAY_S = 3600, 86_400
REVIEW_S = 3600


@dataclass(frozen=True)
class Ceilings:
    """The ceilings, in 0.000001 USDC. None: no ceiling."""

    purchase: int | None = None
    hour: int | None = None
    day: int | None = None


class SalesCeilings:
    """Compares amounts with the ceilings, and holds payments beyond them back for a person."""

    def __init__(self, ceilings: Ceilings, store: SqlPurchaseStore, clock: Clock) -> None:
        self._ceilings, self._store, self._clock = ceilings, store, clock

    @property
    def most(self) -> int | None:
        """The largest purchase, in 0.000001 USDC, or None if there is no such ceiling."""
        return self._ceilings.purchase

    async def find_excess(self, amount: int) -> str | None:
        """Return in words which ceiling an amount (in 0.000001 USDC) would exceed now, or None if it exceeds none."""
        most = self._ceilings
        if most.purchase is not None and amount > most.purchase:
            return f"more than {_usd(most.purchase)} USD in one purchase"
        bounds = [ceiling for ceiling in (most.hour, most.day) if ceiling is not None]
        if not bounds or await self._sum_sold(DAY_S) + amount <= min(bounds):
            return None  # nor the ceiling of an hour, because no more was sold in the hour than in the day
        for ceiling, span_s, name in ((most.hour, HOUR_S, "an hour"), (most.day, DAY_S, "a day")):
            if ceiling is not None and await self._sum_sold(span_s) + amount > ceiling:
                return f"more than {_usd(ceiling)} USD from all buyers within {name}"
        return None

    async def _sum_sold(self, span_s: int) -> int:
        return await self._store.sum_sold(int((self._clock.time() - span_s) * 1000))

    async def hold_excess(self, tx_hash: bytes, purchase: int, amount: int) -> None:
        """Hold back a transfer that exceeds a ceiling. Raises PaymentPending until a person approves it."""
        excess = await self.find_excess(amount)
        now = int(self._clock.time() * 1000)
        if excess and await self._store.hold_transfer(tx_hash, purchase, amount, excess, now):
            log.error("a payment waits for a person", extra={"reason": excess, "tx": f"0x{tx_hash.hex()}"})
            raise PaymentPending(
                f"The payment has arrived, but it is {excess}, so a person has to approve it. Confirm again later.",
                headers={"Retry-After": str(REVIEW_S)},
                retry_after_seconds=REVIEW_S,
            )

    async def refuse_excess(self, amount: int) -> None:
        """Raise SalesCeilingReached if a signed payment, which is not made yet, would exceed a ceiling."""
        excess = await self.find_excess(amount)
        if excess:
            log.error("a payment was refused: it would cross a ceiling", extra={"reason": excess})
            raise SalesCeilingReached(
                f"This payment was not made because it would come to {excess}.",
                headers={"Retry-After": str(REVIEW_S)},
                retry_after_seconds=REVIEW_S,
            )


def make_ceilings(settings: PaymentSettings, store: SqlPurchaseStore, clock: Clock) -> SalesCeilings:
    """Return the ceilings that the settings define: how much is sold without a person's approval."""

    def atomic(usd: int | None) -> int | None:
        return None if usd is None else usd * ATOMIC

    ceilings = Ceilings(
        purchase=atomic(settings.ceiling_purchase_usd),
        hour=atomic(settings.ceiling_hour_usd),
        day=atomic(settings.ceiling_day_usd),
    )
    return SalesCeilings(ceilings, store, clock)


def _usd(amount: int) -> str:
    return f"{amount // ATOMIC:,}".replace(",", " ")
