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
    fault(
        "toolserver/core/tracing.py",
        "a process that ends waits for a collector as long as that likes",
        "    with anyio.move_on_after(LAST_S, shield=True):\n",
        "    with anyio.CancelScope(shield=True):\n",
        "tests/core/test_tracing.py",
    ),
)
