"""Manages the limits that the owner of a token sets on it, for account tools: with times instead of milliseconds."""

from dataclasses import dataclass, fields
from datetime import UTC, datetime
from typing import NamedTuple

from toolserver.clock import Clock
from toolserver.errors import NotSupported
from toolserver.money.ledger.owner_limits import DAY_MS, LimitChange
from toolserver.money.ledger.protocol import LimitsLedger, Who

TOKEN_PATH = "/api/payment/token"


@dataclass(frozen=True, slots=True)
class LimitWish:
    """The limits that an owner requests. None means unchanged, and 0 takes a limit away."""

    credits_per_day: int | None = None
    frozen: bool | None = None
    alert_below: int | None = None
    alert_percent: int | None = None


class LimitDetails(NamedTuple):
    """The limits of a token as its owner sees them. None: there is no such limit."""

    credits_per_day: int | None
    spent_today: int
    frozen: bool
    frozen_at: datetime | None
    alert_below: int | None
    alert_percent: int | None


class TokenLimits:
    """The limits of all tokens, each managed with the token itself. `ledger` is None if another service keeps it."""

    def __init__(self, ledger: LimitsLedger | None, clock: Clock) -> None:
        self._ledger, self._clock = ledger, clock

    async def change(self, who: Who, wish: LimitWish) -> LimitDetails:
        """Change the limits of a token and return them. A member that is None does not change.

        Raises:
            PaymentRequired, AllowanceConflict: the token is not valid, or it is an allowance.
            NotSupported: the ledger belongs to another service.
        """
        if self._ledger is None:
            raise NotSupported("This server does not keep the ledger: set the limits of a token at the one that does.")
        changed = frozenset(field.name for field in fields(wish) if getattr(wish, field.name) is not None)
        change = LimitChange(
            changed,
            wish.credits_per_day or None,
            bool(wish.frozen),
            wish.alert_below or None,
            wish.alert_percent or None,
        )
        limits = await self._ledger.change_limits(who, change)
        frozen_at = limits.frozen_at
        return LimitDetails(
            limits.credits_per_day,
            limits.spent_on(int(self._clock.time() * 1000) // DAY_MS),
            frozen_at is not None,
            None if frozen_at is None else datetime.fromtimestamp(frozen_at / 1000, UTC),
            limits.alert_below,
            limits.alert_percent,
        )
