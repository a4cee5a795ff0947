"""Faults of the ledger: its operations, its statements, and the sides of a ledger that a sister service keeps."""

from tests.mutants.faults import fault

FAULTS = (
    fault(
        "toolserver/money/ledger/operations.py",
        "a refund takes credits that an account does not have",
        "        if account.spendable < self.credits:\n",
        "        if False:\n",
        "tests/money/ledger/test_account_operations.py",
    ),
    fault(
        "toolserver/money/ledger/client/journal_store.py",
        "a release is forgotten when the answer of its call was sent",
        "\n      AND state IN ('committing', 'committed')",
        "",
        "tests/money/ledger/client/test_journal_store.py",
    ),
    fault(
        "toolserver/money/ledger/client/ledger.py",
        "the outbox checks without pause for an owner that cannot be reached",
        "if next_s is None or not self._owner.breaker.closed:",
        "if next_s is None:",
        "tests/money/ledger/client/test_outbox.py",
    ),
    fault(
        "toolserver/money/ledger/sql_statements.py",
        "a balance that its statement does not explain is not reported",
        "if total != page.credits:",
        "if total > page.credits:",
        "tests/money/ledger/test_sql_audit.py",
    ),
    fault(
        "toolserver/money/ledger/server/api.py",
        "a sister service charges in the name of another one",
        "if service is not None and service not in allowed:",
        "if not allowed:",
        "tests/money/ledger/server",
    ),
    fault(
        "toolserver/money/ledger/server/api.py",
        "a step of which a sister service waits for the end no longer is undone, and found so by its next request",
        "        return await asyncio.shield(task)\n",
        "        return await task\n",
    ),
)
