"""Write the notices about thresholds that the owner of a token set, for subscriptions to `credit-alerts`.

They carry no payload of a tool and cost nothing. The ledger notes a crossing in the
transaction of the charge that causes it, and the notice is planned in the transaction that
removes the crossing, so that there is one for each.
"""

import msgspec

from toolserver.core.models import iso_ms
from toolserver.money.ledger.owner_limits import AlertCrossing

CREDIT_ALERTS = "credit-alerts"
"""The name to subscribe to, where others have the short name of a premium endpoint."""

EXAMPLE = AlertCrossing(
    account=0,
    alert="balance",
    crossed_at=1_800_000_000_000,
    credits_left=49,
    spent_today=12,
    credits_per_day=100,
    alert_below=50,
    alert_percent=80,
)


def compose_notice(crossing: AlertCrossing) -> bytes:
    """Return the `data` of a delivery, as JSON: what was crossed, when, and the figures at that moment."""
    detail = (
        f"{crossing.credits_left} credits are left, fewer than {crossing.alert_below}."
        if crossing.alert == "balance"
        else f"{crossing.spent_today} of the {crossing.credits_per_day} credits per day (UTC) are spent, "
        f"{crossing.alert_percent} percent or more."
    )
    return msgspec.json.encode(
        {
            "alert": crossing.alert,
            "crossed_at": iso_ms(crossing.crossed_at / 1000),
            "detail": detail,
            "credits_left": crossing.credits_left,
            "spent_today": crossing.spent_today,
            "credits_per_day": crossing.credits_per_day,
            "alert_below": crossing.alert_below,
            "alert_percent": crossing.alert_percent,
        }
    )
