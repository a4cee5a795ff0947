"""Limits the bodies that an account receives without paying: those that were sent and refused, or that cost nothing.

A receiver can read a body and then refuse it. Every body therefore counts from before it is sent until it is paid for,
for one hour: for the paying account first (a token with all its allowances), and for its token, target and host. The
counts belong to no subscription, so that a new one continues them, and they are in the database, so that instances
share them and a restart keeps them. `UnchargedLimit` is the same law for calls; it counts in memory, and by tool.

Over its life an account has at most three unpaid bodies for each credit that it paid for deliveries, of which one may
be free, whatever tokens, allowances, targets and hosts it uses and however long it waits. A new account begins with as
many as an hour has.

The account and its token are limited. Targets and hosts only lead to a challenge, and never
for a subscription whose own deliveries are accepted: otherwise strangers could end deliveries
to a receiver by refusing theirs at its host.
"""

from dataclasses import dataclass
from typing import Literal

from toolserver.webhooks.records import Attempt, PayerCounts, UnpaidBody, WebhookFire, WebhookSubscription
from toolserver.webhooks.store import WebhookTables

HOUR_MS = 3_600_000
UNCHALLENGED = 3  # refused bodies within an hour, after which a challenge comes first
REFUSED_PER_CREDIT, FREE_PER_CREDIT = 2, 1  # over the life of an account

Admission = Literal["send", "challenge", "only_challenge", "refuse"]


def counts_as_unpaid(fire: WebhookFire) -> bool:
    """Tell if the body of a fire is what is sold. Tests have examples, and repeats are the operator's."""
    return fire.price > 0 or fire.kind == "no_data"


def is_spent(counts: PayerCounts, first: int, *, is_free: bool) -> bool:
    """Return True if an account may have no more unpaid bodies, free or not, until it has paid for more deliveries.

    It has `first` of them before it pays. What was free does not count against deliveries with a price, so that an
    alert is not lost because values were missing before it.
    """
    if is_free:
        return counts.refused + counts.free >= max(first, FREE_PER_CREDIT * counts.paid)
    return counts.refused >= max(first, REFUSED_PER_CREDIT * counts.paid)


@dataclass(frozen=True, slots=True)
class AdmitBody:
    """Count a body that is about to be sent. Every attempt of a fire sends the same body, which counts once.

    Counts nothing and returns "refuse" if `per_hour` bodies of the account are unpaid, and "only_challenge" if as many
    are as it may ever have: whether its endpoint fails is then still known.
    """

    fire: str
    subscription: WebhookSubscription
    per_hour: int
    now: int
    is_free: bool = False

    def on(self, tables: WebhookTables) -> Admission:
        if tables.has_unpaid(self.fire):
            return "send"
        body = UnpaidBody.of(self.fire, self.subscription, self.now)
        since = self.now - HOUR_MS
        for column in ("payer", "owner"):
            if tables.count_unpaid(column, getattr(body, column), since, self.per_hour) >= self.per_hour:
                return "refuse"
        if is_spent(tables.find_payer(body.payer), self.per_hour, is_free=self.is_free):
            return "only_challenge"
        tables.add_unpaid(body)
        tables.count_payer(body.payer, PayerCounts(free=1) if self.is_free else PayerCounts(refused=1))
        proven = self.subscription.delivered_count > 0 and not self.subscription.consecutive_failures
        columns = ("payer", "owner") if proven else ("payer", "owner", "target", "host")
        counts = (
            tables.count_unpaid(column, getattr(body, column), since, UNCHALLENGED, refused=True) for column in columns
        )
        return "challenge" if any(count >= UNCHALLENGED for count in counts) else "send"


@dataclass(frozen=True, slots=True)
class RefuseBody:
    """Note that a body was sent and refused, or may have been read."""

    fire: str

    def on(self, tables: WebhookTables) -> None:
        tables.refuse_unpaid(self.fire)


@dataclass(frozen=True, slots=True)
class WithdrawBody:
    """Stop counting a body that was not sent."""

    fire: str
    is_free: bool = False

    def on(self, tables: WebhookTables) -> None:
        payer = tables.remove_unpaid(self.fire)
        if payer is not None:
            tables.count_payer(payer, PayerCounts(free=-1) if self.is_free else PayerCounts(refused=-1))


def note_failure(fire: WebhookFire, attempt: Attempt) -> RefuseBody | WithdrawBody:
    """Return what to count after a failed attempt: a body that may have been read stays counted."""
    return RefuseBody(fire.id) if attempt.maybe_read else WithdrawBody(fire.id, is_free=not fire.price)


@dataclass(frozen=True, slots=True)
class ForgetUnpaid:
    """Remove bodies that count no longer. One from the future, before the clock was set back, counts from now on."""

    now: int

    def on(self, tables: WebhookTables) -> None:
        tables.forget_unpaid(self.now - HOUR_MS, self.now)
