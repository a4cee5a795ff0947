"""Write the operators' page: advice, today's money, pending work, unwell sources, the log of calls.

The report sends no requests, and it names no token, no owner and no webhook address.
"""

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import anyio.to_thread

from toolserver.clock import Clock
from toolserver.core.models import iso, moment
from toolserver.errors import BillingUnavailable
from toolserver.money.books.open_cases import list_open_cases, list_pending_payments, sum_open_quotes
from toolserver.money.books.sql_books import read_books
from toolserver.money.ledger.store import FILE
from toolserver.money.receipts.log import LogForked
from toolserver.serving.advice import Advice, give_advice
from toolserver.serving.money import MoneyParts
from toolserver.serving.readiness import Readiness
from toolserver.serving.service_status import ServiceStatus
from toolserver.settings import Settings
from toolserver.sql.errors import StorageFailed
from toolserver.upstream.fetcher import Fetcher
from toolserver.webhooks.store import WebhookStore

DAY_MS = 86_400_000
LISTED, COUNTED = 50, 1000
WORST_FIRST = ("down", "failing", "up", "unknown")


class OperatorReport:
    """Reads the report of one service. `webhooks` is None if they are switched off."""

    def __init__(
        self,
        settings: Settings,
        money: MoneyParts,
        status: ServiceStatus,
        readiness: Readiness,
        fetcher: Fetcher,
        webhooks: WebhookStore | None,
        clock: Clock,
    ) -> None:
        self._settings, self._money, self._status, self._readiness = settings, money, status, readiness
        self._fetcher, self._webhooks, self._clock = fetcher, webhooks, clock

    async def read(self) -> dict[str, Any]:
        """Return the whole report as JSON values: amounts in USD or credits, times in ISO 8601, spans in seconds."""
        status = await self._status.read()
        sources = [source for source in status["sources"] if source["state"] != "unknown"]
        losses = self._readiness.list_losses(status["checks"])
        log = await self._read_log()
        money = await self._read_money()
        return {
            "generated_at": status["generated_at"],
            "service": status["service"],
            "checks": status["checks"],
            "degraded": status["degraded"],
            "advice": [asdict(each) for each in list_advice(self._settings, losses, money, log)],
            "money": money,
            "pending": await self._read_pending(),
            "sources": sorted(sources, key=_rank),
            "counts": status["counts"],
            "left_alone": self._list_left_alone(),
            "announced": [each._asdict() for each in self._fetcher.announcements.list_all()],
            "log": log,
        }

    async def _read_money(self) -> dict[str, Any]:
        """Return today's books and open items, or under `absent` why there are none here."""
        if (absent := self._say_why_absent()) is not None:
            return {"absent": absent}
        try:
            return await anyio.to_thread.run_sync(self._read_file)
        except StorageFailed as error:
            return {"absent": f"The ledger cannot be read: {error}"}

    def _say_why_absent(self) -> str | None:
        if self._money.followed is not None:
            return "The ledger belongs to a sister service, whose operators' page shows the books."
        if self._money.file is None:
            return "Nothing is sold here."
        if self._money.file.shared:
            return "The ledger is in a database on a server. This page does not sum up its books yet."
        return None

    def _read_file(self) -> dict[str, Any]:
        path, now = self._settings.data_dir / FILE, int(self._clock.time() * 1000)
        today = now - now % DAY_MS
        return {
            "day": iso(moment(today / 1000))[:10],
            **read_books(path, today, today + DAY_MS),
            "quotes": sum_open_quotes(path, now)._asdict(),
            "cases": list_open_cases(path, now, LISTED),
            "unsettled": list_pending_payments(path, now, LISTED),
        }

    async def _read_pending(self) -> dict[str, Any]:
        """Return webhooks and reserved credits; each is None if absent or unreadable, which the advice then says."""
        try:
            return {"webhooks": await self._read_webhooks(), "reserved": await self._read_reserved()}
        except (StorageFailed, BillingUnavailable):
            return {"webhooks": None, "reserved": None}

    async def _read_reserved(self) -> dict[str, Any] | None:
        """Return the credits reserved for unfinished calls; None if another service keeps them."""
        if self._money.own is None or self._money.own.file is None:
            return None
        holds = await self._money.own.holds(COUNTED)
        ends = iso(moment(holds[0].expires_at)) if holds else None
        return {"calls": len(holds), "credits": sum(hold.credits for hold in holds), "first_ends_at": ends}

    async def _read_webhooks(self) -> dict[str, Any] | None:
        if self._webhooks is None:
            return None
        active = await self._webhooks.all(COUNTED, "active")
        paused = await self._webhooks.all(COUNTED, "paused")
        due = await self._webhooks.next_due()
        failing = [each for each in active if each.consecutive_failures]
        return {
            "active": len(active),
            "failing": len(failing),
            "paused": len(paused),
            "next_due_at": None if due is None else iso(moment(due / 1000)),
            "unwell": [
                {
                    "id": each.id,
                    "endpoint": each.endpoint,
                    "state": each.state,
                    "failures": each.consecutive_failures,
                    "reason": each.pause_reason or each.last_error,
                }
                for each in [*paused, *failing][:LISTED]
            ],
        }

    def _list_left_alone(self) -> list[dict[str, Any]]:
        """List hosts that refuse this machine and sources that keep failing, which are skipped for `left_s` seconds."""
        hosts = [
            {"name": host, "why": f"refuses this machine (status {status})", "left_s": round(left_s)}
            for host, status, left_s in self._fetcher.refusals.list_closed()
        ]
        failing = self._fetcher.health.list_open()
        return [*hosts, *({"name": name, "why": "keeps failing", "left_s": round(left_s)} for name, left_s in failing)]

    async def _read_log(self) -> dict[str, Any] | None:
        """Return the state of the log of uncharged calls; `trouble` says why it cannot be signed or read."""
        if (evidence := self._money.evidence) is None:
            return None
        try:
            signed = await evidence.log.checkpoint()
            day = await evidence.no_charge(self._clock.now().date())
        except LogForked as forked:
            return {"trouble": f"It was changed: {forked}", "note": None}
        except StorageFailed as error:
            return {"trouble": f"It cannot be read: {error}", "note": None}
        return {
            "trouble": None,
            "note": signed.note,
            "size": signed.size,
            "signed_at": iso(moment(signed.at / 1000)),
            "waiting": day["log"]["waiting"],
            "uncharged_today": day["count"],
        }


def list_advice(
    settings: Settings, losses: Mapping[str, str], money: dict[str, Any], log: dict[str, Any] | None
) -> list[Advice]:
    """Return advice that only the running service can give, then the advice of `doctor` without source requests.

    `losses` are what the instance works without; `money` and `log` are those members of the report.
    """
    findings = [Advice(f"{part}_lost", True, loss) for part, loss in losses.items()]
    findings += [
        Advice("books_disagree", True, f"The books do not agree. {problem}.") for problem in money.get("problems", ())
    ]
    if money.get("cases"):
        many = f"{len(money['cases'])} payments need" if len(money["cases"]) > 1 else "A payment needs"
        findings.append(Advice("payments_in_review", True, f"{many} your decision; see below."))
    if log is not None and log["trouble"] is not None:
        findings.append(Advice("log_unwell", True, f"The log of uncharged calls: {log['trouble']}"))
    return [*findings, *give_advice(settings, {}, [])]


def _rank(source: dict[str, Any]) -> tuple[int, float, str]:
    """Return the sort key of a source: its state, then its share of good answers in the past day."""
    fresh = source["past_day"]["fresh"]
    return WORST_FIRST.index(source["state"]), 1.0 if fresh is None else fresh, source["name"]
