"""Report what `/status` shows: the service, its ledger and chain, and how each source did in the past day."""

import math
from collections import Counter
from collections.abc import Mapping
from datetime import date
from typing import Any, Literal

from toolserver.context.service_info import ServiceInfo
from toolserver.core.metrics import Metrics
from toolserver.core.models import iso, moment
from toolserver.registry.registry import Registry
from toolserver.registry.source_facts import SourceFacts
from toolserver.registry.source_list import list_sources
from toolserver.serving.known_sources import KnownSources
from toolserver.serving.money import MoneyParts
from toolserver.serving.readiness import LEDGER_CHECKS, UNSOLD, Readiness
from toolserver.upstream.fetcher import Fetcher
from toolserver.upstream.source_health import QUARTER_S, QUARTERS, SourceChange, SourceQuarter

SourceState = Literal["up", "failing", "down", "unknown"]
HOUR_QUARTERS = 4


class ServiceStatus:
    """Reads the status of one service from what is already known, without new requests or measurements.

    `known` has what is known of its sources beyond the past day.
    """

    def __init__(
        self,
        registry: Registry,
        fetcher: Fetcher,
        metrics: Metrics,
        info: ServiceInfo,
        money: MoneyParts,
        readiness: Readiness,
        known: KnownSources,
    ) -> None:
        self._names = [str(source["name"]) for source in list_sources(registry)]
        self._fetcher = fetcher
        self._metrics = metrics
        self._info = info
        self._money = money
        self._readiness = readiness
        self.known = known

    async def read(self) -> dict[str, Any]:
        """Return the body of `/status.json`.

        `day` of a source has one letter for each quarter of an hour, oldest first: `g` every
        exchange was good, `p` some were, `f` none was, and `.` means that the source was not
        requested, so that nothing is known. `unsold` says why nothing can be bought, or is
        null.
        """
        now = self._info.clock.time()
        checks = await self._readiness.check()
        losses = self._readiness.list_losses(checks)
        ledger = self._describe_ledger(checks)
        changes = self._fetcher.history.changes()
        facts = self.known.read(self._names)
        sources = [
            {**self._describe(name, now, changes), "known": describe_facts(facts.get(name, SourceFacts()))}
            for name in self._names
        ]
        counts = Counter(source["state"] for source in sources)
        return {
            "generated_at": iso(moment(now)),
            "status": "ok" if all(checks.values()) and ledger["up"] else "degraded",
            "checks": checks,
            "degraded": list(losses),
            "unsold": next((UNSOLD[part] for part in UNSOLD if part in losses), None),
            "service": self._describe_service(now),
            "ledger": ledger,
            "chain": self._describe_chain(),
            "counts": {state: counts[state] for state in ("up", "failing", "down", "unknown")},
            "quarter_s": QUARTER_S,
            "day_from": iso(moment(_first_quarter(now) * QUARTER_S)),
            "sources": sources,
            "changes": [{**change._asdict(), "at": iso(moment(change.at))} for change in changes],
        }

    def _describe_service(self, now: float) -> dict[str, Any]:
        times = self._metrics.call_times()
        return {
            "version": self._info.version,
            "started_at": iso(moment(now - self._info.uptime_s)),
            "uptime_s": self._info.uptime_s,
            "calls": times.calls,
            "calls_from_cache": times.hits,
            "timed_calls": times.timed,
            "p50_within_s": times.within(0.5),
            "p95_within_s": times.within(0.95),
        }

    def _describe_ledger(self, checks: Mapping[str, bool]) -> dict[str, Any]:
        if (followed := self._money.followed) is not None:
            health = followed.health
            waits = {"retry_in_s": round(health.wait_s), "untold": health.waiting}
            return {"mode": "followed", "up": health.is_up, **waits, "rejected": health.rejected}
        written = [checks[name] for name in LEDGER_CHECKS if name in checks]
        return {"mode": "own" if written else "memory", "up": all(written)}

    def _describe_chain(self) -> dict[str, int] | None:
        servers = self._money.payments.count_servers()
        return None if servers is None else {"servers": servers.configured, "usable": servers.usable}

    def _describe(self, name: str, now: float, changes: list[SourceChange]) -> dict[str, Any]:
        rows = self._fetcher.history.quarters(name)
        last = rows[-1] if rows else None
        good_at = self._fetcher.history.find_good(name)
        circuit = self._fetcher.health.state(name)
        changed = next((change.at for change in changes if change.source == name), None)
        hour = [row for row in rows if row.quarter > math.floor(now / QUARTER_S) - HOUR_QUARTERS]
        return {
            "name": name,
            "state": _judge(last, circuit),
            "circuit": circuit,
            "last": last.last if last else None,
            "asked_at": iso(moment(last.last_at)) if last else None,
            "good_at": None if good_at is None else iso(moment(good_at)),
            "changed_at": None if changed is None else iso(moment(changed)),
            "hour": _sum_up(hour),
            "past_day": _sum_up(rows),
            "day": _draw_day(rows, now),
        }


def describe_facts(facts: SourceFacts) -> dict[str, Any]:
    """Return what is known of a source as `/status.json` has it. Days are ISO 8601."""
    return {
        "seen_on": facts.seen and facts.seen.on.isoformat(),
        "seen_by": facts.seen and facts.seen.by,
        "announced": [
            {"kind": each.kind, "text": each.text, "on": each.on.isoformat(), "ends_on": _write_day(each.ends_on)}
            for each in facts.announced
        ],
        "gone": [{"member": each.member, "given_on": each.given_on.isoformat()} for each in facts.gone],
        "alone": facts.alone,
        "note": facts.note,
    }


def _write_day(day: date | None) -> str | None:
    return None if day is None else day.isoformat()


def _judge(last: SourceQuarter | None, circuit: str) -> SourceState:
    if circuit != "closed":
        return "down"
    if last is None:
        return "unknown"
    return "up" if last.last == "ok" else "failing"


def _sum_up(rows: list[SourceQuarter]) -> dict[str, Any]:
    """Return the number of exchanges, and the shares that were answered at all and answered with fresh data."""
    exchanges, failed = sum(row.asked for row in rows), sum(row.failed for row in rows)
    old = sum(row.old for row in rows)
    return {
        "asked": exchanges,
        "failed": failed,
        "old": old,
        "available": round((exchanges - failed) / exchanges, 4) if exchanges else None,
        "fresh": round((exchanges - failed - old) / exchanges, 4) if exchanges else None,
    }


def _first_quarter(now: float) -> int:
    return math.floor(now / QUARTER_S) - QUARTERS + 1


def _draw_day(rows: list[SourceQuarter], now: float) -> str:
    first, letters = _first_quarter(now), ["."] * QUARTERS
    for row in rows:
        if 0 <= row.quarter - first < QUARTERS:
            letters[row.quarter - first] = "g" if row.good == row.asked else "p" if row.good else "f"
    return "".join(letters)
