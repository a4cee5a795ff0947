"""A status as `/status.json` says it, for tests of what is written from it."""

from toolserver.registry.source_list import list_sources

NOTHING_KNOWN = {"seen_on": None, "seen_by": None, "announced": [], "gone": [], "alone": "", "note": ""}
DAY = "." * 90 + "ggpf.g"
CHANGE = {"at": "2027-01-15T07:00:00Z", "source": "Sample.place", "kind": "down", "reason": "timeout"}


def summed(asked=0, failed=0, old=0):
    share = (asked - failed) / asked if asked else None
    fresh = (asked - failed - old) / asked if asked else None
    return {"asked": asked, "failed": failed, "old": old, "available": share, "fresh": fresh}


def source_of(name, state="unknown", **more):
    told = {"name": name, "state": state, "circuit": "closed", "last": None, "asked_at": None, "good_at": None}
    told |= {"changed_at": None, "hour": summed(), "past_day": summed(), "day": "." * 96, "known": NOTHING_KNOWN}
    return told | more


def status_of(registry, *, states=None, changes=(), **more):
    """The status of a service with this registry; `states` are sources by name, the others are unknown."""
    sources = [source_of(source["name"], **(states or {}).get(source["name"], {})) for source in list_sources(registry)]
    counts = {word: sum(one["state"] == word for one in sources) for word in ("up", "failing", "down", "unknown")}
    service = {"version": "1.0.0", "started_at": "2027-01-15T06:00:00Z", "uptime_s": 7265, "calls": 12345}
    service |= {"calls_from_cache": 12000, "timed_calls": 345, "p50_within_s": 0.005, "p95_within_s": 2.0}
    told = {"generated_at": "2027-01-15T08:00:00Z", "status": "ok", "checks": {"running": True}, "service": service}
    told |= {"ledger": {"mode": "own", "up": True}, "chain": {"servers": 2, "usable": 1}, "counts": counts}
    told |= {"degraded": [], "unsold": None}
    told |= {"quarter_s": 900, "day_from": "2027-01-14T08:15:00Z", "sources": sources, "changes": list(changes)}
    return told | more
