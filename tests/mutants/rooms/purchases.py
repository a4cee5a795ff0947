"""Faults of purchases: quotes, confirmations, what the chain undoes, refunds and reissues."""

from tests.mutants.faults import fault

ROOM = "toolserver/money/purchases"

FAULTS = (
    fault(
        f"{ROOM}/deposit.py",
        "a sum without a point is a point",
        "if (x, y) == (0, 0):",
        "if x == y == 1:",
        "tests/money/purchases/test_deposit.py",
    ),
    fault(
        f"{ROOM}/chain/reorg_watch.py",
        "credits are taken back at the first look that misses a payment",
        "elif now - credited.missing_since >= MISSING_S * 1000:",
        "elif now - credited.missing_since >= 0:",
        "tests/money/purchases/test_reorg_watch.py",
    ),
    fault(
        f"{ROOM}/chain/rpc_pool.py",
        "two servers that disagree are believed",
        "if len(counts) != 1 or _count_apart(seen) < agreeing:",
        "if _count_apart(seen) < agreeing:",
        "tests/money/purchases/test_rpc_pool.py",
    ),
    fault(
        f"{ROOM}/token_encryption.py",
        "the key of a token is the same for every payment",
        'return hmac.digest(extracted, payment + b"\\1", "sha256")',
        'return hmac.digest(extracted, b"\\1", "sha256")',
        "tests/money/purchases/test_quotes.py",
    ),
    fault(
        f"{ROOM}/quotes.py",
        "a block of address numbers is not reserved on the disk",
        "end = int(await anyio.to_thread.run_sync(self._marks.change, ADDRESS_MARK, rule))",
        "end = rule(self._marks.read(ADDRESS_MARK))",
        "tests/money/purchases/test_address_numbers.py",
    ),
    fault(
        f"{ROOM}/refunds.py",
        "a refund that may be signed already is cancelled",
        'if refund.state not in ("asked", "booked") or refund.planned_at is not None:',
        'if refund.state not in ("asked", "booked"):',
        "tests/money/purchases/test_refunds.py",
    ),
    fault(
        f"{ROOM}/reissues.py",
        "a token is replaced before its holder may have objected",
        "if now < reissue.due_at:",
        "if now < reissue.due_at - WAIT_MS:",
        "tests/money/purchases/test_reissues.py",
    ),
)
