"""Defines the limits that the owner of a token sets on it: a cap per UTC day, a freeze, and when to be warned.

They bind the token and all its allowances, from the next reservation on.
"""

from dataclasses import dataclass

from toolserver.errors import InsufficientCredits
from toolserver.money.ledger.daily_spending import DAY_MS, DailySpending

MOST_CREDITS = 10**9
THAW = "PATCH /api/payment/token (the tool token_update) with frozen: false"


@dataclass(slots=True)
class OwnerLimits(DailySpending):
    """The limits of one account as they are stored. Times are in ms.

    `alert_below` warns when fewer credits are left, `alert_percent` when this share of the cap per day is spent.
    `spent_today` counts the calls of the token and of its allowances on the UTC day `day`, in days since 1970.
    """

    account: int
    credits_per_day: int | None
    frozen_at: int | None
    alert_below: int | None
    alert_percent: int | None
    day: int
    spent_today: int
    changed_at: int

    def check(self, credits: int, now: int) -> None:
        """Raise InsufficientCredits, naming the `cap`, if the limits forbid a call at this price."""
        if self.frozen_at is not None:
            detail = f"The owner of this token has frozen it, so it pays for nothing. To thaw it: {THAW}."
            raise InsufficientCredits(detail, required=credits, credits_remaining=0, cap="frozen")
        room = self.find_room_today(now)
        if room is not None and credits > room:
            raise InsufficientCredits(
                f"This call costs {credits} credits; {self.spent_on(now // DAY_MS)} of the {self.credits_per_day} that "
                "the owner of this token allows per day (UTC) are spent.",
                required=credits,
                credits_remaining=room,
                cap="credits_per_day",
            )

    def find_alerts(self, spendable: int, now: int) -> tuple[str, ...]:
        """Return the thresholds that are crossed: `balance`, when fewer credits are left, and `day`."""
        is_low = self.alert_below is not None and spendable < self.alert_below
        cap, percent = self.credits_per_day, self.alert_percent
        is_much = cap is not None and percent is not None and self.spent_on(now // DAY_MS) * 100 >= cap * percent
        return ("balance",) * is_low + ("day",) * is_much


@dataclass(frozen=True, slots=True)
class LimitChange:
    """New limits: `changed` names those that change, and None takes one away.

    Raises ValueError if a limit is out of range.
    """

    changed: frozenset[str]
    credits_per_day: int | None = None
    frozen: bool = False
    alert_below: int | None = None
    alert_percent: int | None = None

    def __post_init__(self) -> None:
        for credits in (self.credits_per_day, self.alert_below):
            if credits is not None and not 1 <= credits <= MOST_CREDITS:
                raise ValueError(f"a number of credits must be from 1 to {MOST_CREDITS}")
        if self.alert_percent is not None and not 1 <= self.alert_percent <= 100:
            raise ValueError("a share must be from 1 to 100 percent")

    def apply(self, limits: OwnerLimits, now: int) -> None:
        """Change limits. What is frozen already keeps the time since when it is."""
        for name in ("credits_per_day", "alert_below", "alert_percent"):
            if name in self.changed:
                setattr(limits, name, getattr(self, name))
        if "frozen" in self.changed:
            limits.frozen_at = (limits.frozen_at or now) if self.frozen else None
        limits.changed_at = now
