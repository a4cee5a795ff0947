"""Faults of what instances share through Redis."""

from tests.mutants.faults import fault

FAULTS = (
    fault(
        "toolserver/shared/redis.py",
        "a connection that was woken for nothing sends an empty batch",
        "if not batch:  # woken",
        "if False:  # woken",
        "tests/shared/test_redis.py",
    ),
)
