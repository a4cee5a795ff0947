"""Faults of the room that asks the sources."""

from tests.mutants.faults import fault

CACHE, FETCHER = "toolserver/upstream/cache.py", "toolserver/upstream/fetcher.py"
FRESHNESS, SENDER = "toolserver/upstream/freshness.py", "toolserver/upstream/http_sender.py"

FAULTS = (
    fault(
        CACHE,
        "an answer is kept for its grace alone, not for its freshness before it",
        "total_seconds() <= source.fresh_s + source.keep_s",
        "total_seconds() <= source.keep_s",
        "tests/upstream/test_cache.py",
    ),
    fault(
        CACHE,
        "a cached answer says that it was fetched just now",
        "CachedAnswer(replace(fetched.answer, latency_ms=None)",
        "CachedAnswer(fetched.answer",
        "tests/upstream/test_cache.py",
    ),
    fault(
        FETCHER,
        "three mirrors have half of the time each",
        "min(len(plan), 3)",
        "min(len(plan), 2)",
        "tests/upstream/test_fetcher.py",
    ),
    fault(
        FRESHNESS,
        "an item may go back after exactly an hour",
        "elapsed_s > BACK_S",
        "elapsed_s >= BACK_S",
        "tests/upstream/test_freshness.py",
    ),
    fault(
        SENDER,
        "a time to wait is read from a refusal only",
        'or "retry-after" in raw.headers)',
        "or False)",
        "tests/upstream/test_http_sender.py",
    ),
)
