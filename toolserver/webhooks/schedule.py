"""Compute when a subscription fires: once in every five-minute slot, counted from its creation.

Counting from the creation spreads subscriptions over the five minutes. All times are milliseconds since 1970.
"""

SLOT_MS = 300_000
THINNEST = 12  # a failing endpoint is tried at least in every twelfth slot, which is once an hour
FAR_MS = 2 * SLOT_MS  # no fire or healthy subscription is ever due later than this, unless the clock was set back
FAR_FAILING_MS = (THINNEST + 2) * SLOT_MS  # the same for subscriptions whose endpoint fails


def next_slot(created_at: int, now: int, *, slots: int = 1) -> int:
    """Return the start of a subscription's next slot after `now`, or of the one `slots` ahead.

    `now` may be before the creation if the clock was set back. The number of missed slots does not matter: a late
    subscription fires once and continues with the next slot.
    """
    return now - (now - created_at) % SLOT_MS + slots * SLOT_MS


def slot_end(created_at: int, now: int) -> int:
    """Return the end of the slot that contains `now`."""
    return next_slot(created_at, now)


def slots_apart(consecutive_failures: int) -> int:
    """Return the number of slots between two fires of an endpoint with this many failures: 1, then 2, 4 … 12."""
    return min(THINNEST, max(1, 2 * consecutive_failures))


def is_misplaced(due_at: int, now: int, *, failing: bool = False) -> bool:
    """Return True if only a clock that has been set back since can explain a due time."""
    return due_at > now + (FAR_FAILING_MS if failing else FAR_MS)
