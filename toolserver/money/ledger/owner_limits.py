"""Defines the limits that the owner of a token sets on it: a cap per UTC day, a freeze, and when to be warned.

They bind the token and all its allowances, from the next reservation on. An allowance has a cap per UTC day of its own,
by the same law: spending counts from the reservation on, so that concurrent calls cannot cross a cap together, and
credits that are given back are deducted from the day on which they were reserved.
"""

from dataclasses import dataclass
from typing import Literal, NamedTuple

from toolserver.errors import InsufficientCredits

DAY_MS = 86_400_000

Alert = Literal["balance", "day"]
MOST_CREDITS = 10**9
THAW = "PATCH /api/payment/token (the tool token_update) with frozen: false"


class AlertCrossing(NamedTuple):
    """The crossing of a threshold, with the figures and limits of the account at that moment (ms since 1970)."""

    account: int
    alert: Alert
    crossed_at: int
    credits_left: int
    spent_today: int
    credits_per_day: int | None
    alert_below: int | None
    alert_percent: int | None


class DailySpending:
    """The spending of one day, beside a cap per day. `day` is in days since 1970; times are in ms."""

    credits_per_day: int | None
    day: int
    spent_today: int

    def spent_on(self, day: int) -> int:
        """Return the credits spent on a day: `spent_today` for the day that is counted, and 0 for any other."""
        return self.spent_today if day == self.day else 0

    def find_room_today(self, now: int) -> int | None:
        """Return how many credits the cap per day still allows to spend now; None if there is no such cap."""
        return None if self.credits_per_day is None else max(0, self.credits_per_day - self.spent_on(now // DAY_MS))

    def count(self, credits: int, now: int) -> int:
        """Count credits that are reserved now, and return the day for which they count."""
        day = now // DAY_MS
        if day != self.day:
            self.day, self.spent_today = day, 0
        self.spent_today += credits
        return day

    def uncount(self, credits: int, day: int | None) -> None:
        """Deduct credits that were reserved on a day and are given back, if that day is still counted."""
        if day == self.day:
            self.spent_today -= credits


@dataclass(slots=True)
class OwnerLimits(DailySpending):
    """The limits of one account as they are stored. Times are in ms.

    `alert_below` warns when fewer credits are left, `alert_percent` when this share of the cap
    per day is spent. `spent_today` counts the calls of the token and of its allowances on the
    UTC day `day`, in days since 1970. `low_since` and `alerted_day` say which crossings were
    noted, so that each is noted once.
    """

    account: int
    credits_per_day: int | None
    frozen_at: int | None
    alert_below: int | None
    alert_percent: int | None
    day: int
    spent_today: int
    changed_at: int
    low_since: int | None = None
    alerted_day: int | None = None

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

    def find_alerts(self, spendable: int, now: int) -> tuple[Alert, ...]:
        """Return the thresholds that are crossed: `balance`, when fewer credits are left, and `day`."""
        is_low = self.alert_below is not None and spendable < self.alert_below
        cap, percent = self.credits_per_day, self.alert_percent
        is_much = cap is not None and percent is not None and self.spent_on(now // DAY_MS) * 100 >= cap * percent
        low: tuple[Alert, ...] = ("balance",) if is_low else ()
        return (*low, "day") if is_much else low

    def note_crossings(self, alerts: tuple[Alert, ...], spendable: int, now: int) -> list[AlertCrossing]:
        """Note the crossed thresholds after a charge, and return those that were not crossed before.

        `balance` is crossed again only after the balance was at the threshold or above it, and `day` on another day.
        """
        today = now // DAY_MS
        noted = {"balance": self.low_since is not None, "day": self.alerted_day == today}
        self.low_since = (self.low_since or now) if "balance" in alerts else None
        self.alerted_day = today if "day" in alerts else self.alerted_day
        return [
            AlertCrossing(
                account=self.account,
                alert=alert,
                crossed_at=now,
                credits_left=spendable,
                spent_today=self.spent_on(today),
                credits_per_day=self.credits_per_day,
                alert_below=self.alert_below,
                alert_percent=self.alert_percent,
            )
            for alert in alerts
            if not noted[alert]
        ]


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
            if name in self.changed and getattr(limits, name) != getattr(self, name):
                setattr(limits, name, getattr(self, name))
                if name == "alert_below":  # another threshold has not been crossed yet
                    limits.low_since = None
                else:
                    limits.alerted_day = None
        if "frozen" in self.changed:
            limits.frozen_at = (limits.frozen_at or now) if self.frozen else None
        limits.changed_at = now
