"""Faults of the room that asks the sources."""

from tests.mutants.faults import fault

FAULTS = (
    fault(
        "toolserver/upstream/cache.py",
        "an answer is kept for its grace alone, not for its freshness before it",
        "total_seconds() <= source.fresh_s + source.keep_s",
        "total_seconds() <= source.keep_s",
        "tests/upstream",
    ),
)
