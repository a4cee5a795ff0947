"""Faults of receipts and of the log of uncharged calls."""

from tests.mutants.faults import fault

ROOM = "toolserver/money/receipts"

FAULTS = (
    fault(
        f"{ROOM}/keys.py",
        "a key signs after its end",
        "timely = self.nbf <= now and (self.exp is None or now < self.exp)",
        "timely = self.nbf <= now",
    ),
    fault(
        f"{ROOM}/issue.py",
        "a call is booked in an hour that is in the log already",
        "return max(hour_at(at), self.closed + 1)",
        "return hour_at(at)",
        "tests/money/receipts/test_issue.py",
    ),
    fault(
        f"{ROOM}/log.py",
        "a shorter log is signed",
        "if size < last.size:",
        "if size < last.size - 1:",
        "tests/money/receipts/test_log_state.py",
    ),
    fault(
        f"{ROOM}/sql_keys.py",
        "an instance with the keys of another service starts",
        "if published and not any(key.kid in listed for key in held):",
        "if published and not held:",
        "tests/money/receipts/test_published_keys.py",
    ),
    fault(
        f"{ROOM}/sql_store.py",
        "an hour is appended although a call was booked in it since it was read",
        "if operation.hour <= last_hour(db) or operation.calls != count_booked(db, operation.hour):",
        "if operation.hour <= last_hour(db):",
        "tests/money/receipts/test_store.py",
    ),
)
