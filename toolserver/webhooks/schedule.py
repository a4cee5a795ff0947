"""When a subscription fires: once in every slot of five minutes, counted from its creation.

Counting from the creation spreads subscriptions over the five minutes. All times are milliseconds since 1970.
"""

SLOT_MS = 300_000
THINNEST = 12  # a failing endpoint is tried in every twelfth slot at least, which is once an hour
FAR_MS = 2 * SLOT_MS  # no fire and no healthy subscription is ever due later, unless the clock was set back
FAR_FAILING_MS = (THINNEST + 2) * SLOT_MS  # the same of subscriptions whose endpoint fails


def next_slot(created_at: int, now: int, *, slots: int = 1) -> int:
    """The start of a subscription's next slot after `now`, or of the one `slots` ahead.

    `now` may lie before the creation, after the clock was set back. It does not matter how many slots went by unused:
    a late subscription fires once and goes on with the next slot.
    """
    return now - (now - created_at) % SLOT_MS + slots * SLOT_MS


def slot_end(created_at: int, now: int) -> int:
    """When the slot that `now` lies in is over."""
    return next_slot(created_at, now)


def slots_apart(consecutive_failures: int) -> int:
    """How many slots lie between two fires of an endpoint that failed so often: 1, then 2, 4 … 12."""
    return min(THINNEST, max(1, 2 * consecutive_failures))


def is_misplaced(due_at: int, now: int, *, failing: bool = False) -> bool:
    """Whether a due time can only be explained by a clock that was set back since."""
    return due_at > now + (FAR_FAILING_MS if failing else FAR_MS)
