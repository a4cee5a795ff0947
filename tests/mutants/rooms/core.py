"""Faults of what several rooms need."""

from tests.mutants.faults import fault

FAULTS = (
    fault(
        "toolserver/core/caller.py",
        "a request id of one character is used",
        "8 <= len(",
        "1 <= len(",
        "tests/core/test_ids.py",
    ),
)
