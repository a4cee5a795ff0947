"""Writes /no-charge: the uncharged calls of a day, the latest log entries, the log's signed state. No script."""

import re
from collections.abc import Mapping, Sequence
from datetime import date
from typing import Any

from rest_bridge.asgi import ParsedRequest, PlainReply, Scope, from_query
from rest_bridge.pages.payments import NO_CHARGE as REASONS
from rest_bridge.pages.render import render_page
from rest_bridge.routes import Handler
from rest_bridge.serving import ServedDocument
from toolserver.clock import Clock
from toolserver.errors import InvalidArguments, NotFound
from toolserver.money.receipts.service import LOG_PATH, ReceiptService
from toolserver.registry.registry import Registry
from toolserver.registry.site_facts import NO_CHARGE, RECEIPTS, Document, SiteFacts

SHOWN_DAYS, SHOWN_ENTRIES = 30, 50
STATS = "/api/payment/no-charge-stats"
_DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")


def no_charge_page(
    registry: Registry, facts: SiteFacts, day: Mapping[str, Any], days: Sequence[tuple[str, int]], checkpoint: str
) -> Document:
    """Return the page of one day. `day` is its public account; `days` has all recorded days with their counts."""
    return render_page(
        "no_charge.html",
        registry,
        facts,
        path=NO_CHARGE,
        title="Calls that were not charged",
        about="Every paid call that was not charged, in a public log that cannot be rewritten unnoticed.",
        day=day,
        entries=day["events"][:SHOWN_ENTRIES],
        days=days[:SHOWN_DAYS],
        checkpoint=checkpoint,
        reasons={reason: when for reason, (when, _) in REASONS.items()},
        stats=f"{STATS}?date={day['date']}",
        log=LOG_PATH,
        verify=RECEIPTS,
    )


def no_charge_handler(evidence: ReceiptService | None, clock: Clock, registry: Registry, facts: SiteFacts) -> Handler:
    """Serve the page of today or of `?date=`. Raise NotFound if this instance records no uncharged calls."""

    async def handler(scope: Scope, request: ParsedRequest) -> PlainReply:
        if evidence is None:
            raise NotFound("This instance does not record uncharged calls.")
        day = await evidence.no_charge(_asked_day(scope) or clock.now().date())
        signed = await evidence.log.checkpoint()
        page = no_charge_page(registry, facts, day, await evidence.no_charge_days(), signed.note)
        return ServedDocument(page).reply(request, cache_control=b"public, max-age=5")

    return handler


def _asked_day(scope: Scope) -> date | None:
    """Return the day in the query, or None if there is none. Raise InvalidArguments for a wrong one."""
    words = from_query(scope["query_string"]).get("date")
    if not words:
        return None
    try:
        return date.fromisoformat(words if _DAY.fullmatch(words) else "")
    except ValueError:
        message = "must be a date such as 2027-01-15"
        errors = [{"loc": "date", "msg": message, "type": "value_error"}]
        raise InvalidArguments(f"date: {message}", errors=errors) from None
