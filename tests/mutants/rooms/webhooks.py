"""Faults of the room that delivers webhooks."""

from tests.mutants.faults import fault

FAULTS = (
    fault(
        "toolserver/webhooks/fire_operations.py",
        "a second answer of the receiver accepts a fire again",
        """        if fire is None or fire.state != "open":
            return fire
        accepted""",
        """        if fire is None:
            return fire
        accepted""",
        "tests/webhooks/test_store.py",
    ),
    fault(
        "toolserver/webhooks/fire_operations.py",
        "a failed attempt is not counted when another one follows",
        """            attempts=fire.attempts + 1,
            status=fire.status if""",
        """            attempts=fire.attempts,
            status=fire.status if""",
        "tests/webhooks/test_fire_worker.py",
    ),
    fault(
        "toolserver/webhooks/fire_operations.py",
        "a fire whose turn did not come keeps its claim, as if it had been interrupted",
        "postponed = fire._replace(due_at=self.due_at, claims=0)",
        "postponed = fire._replace(due_at=self.due_at)",
        "tests/webhooks/test_store.py",
    ),
    fault(
        "toolserver/webhooks/unpaid_bodies.py",
        "an account has as many unpaid bodies as it likes, if it waits for them",
        "if is_spent(",
        "if False and is_spent(",
    ),
    fault(
        "toolserver/webhooks/egress.py",
        "a delivery may go to an address that is not public",
        "if not is_public(address):",
        "if False:",
    ),
    fault(
        "toolserver/webhooks/records.py",
        "a receiver's Retry-After is ignored",
        "return max(delay, attempt.retry_after_s or 0.0)",
        "return delay",
        "tests/webhooks/test_schedule.py",
    ),
    fault(
        "toolserver/webhooks/signing.py",
        "a replaced secret signs for ever",
        "return [one for one in (*self.replaced, *former) if now < one.until]",
        "return [*self.replaced, *former]",
        "tests/webhooks/test_secret_box.py",
    ),
    fault(
        "toolserver/webhooks/conditions.py",
        "a condition fires before it has held for its time",
        "if now - since < condition.for_s:",
        "if now - since < 0:",
    ),
)
