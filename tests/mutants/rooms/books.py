"""Faults of the books: months that are closed, proved and removed, and what is compared."""

from tests.mutants.faults import fault

FAULTS = (
    fault(
        "toolserver/money/books/months.py",
        "a month is closed although its rows do not agree",
        '        if facts.problems:\n            raise MonthRefused(f"{span.name} is not closed',
        '        if False:\n            raise MonthRefused(f"{span.name} is not closed',
    ),
    fault(
        "toolserver/money/books/months.py",
        "a month is closed as soon as it ends",
        "SETTLED_MS = 24 * 3_600_000",
        "SETTLED_MS = 0 * 3_600_000",
    ),
    fault(
        "toolserver/money/books/months.py",
        "calls younger than the promised 90 days are removed",
        "return min(span.since, now - PROMISED_MS)",
        "return span.since",
    ),
    fault(
        "toolserver/money/books/months.py",
        "rows that differ from their archive are removed",
        "if different:",
        "if different is None:",
    ),
    fault(
        "toolserver/money/books/months.py",
        "a disk that syncs slowly gets the smallest groups of rows to remove, and the most syncs",
        "pace.follow(group.worked, ",
        "pace.follow(self.monotonic() - began, ",
        "tests/money/books/test_sql_removal.py",
    ),
    fault(
        "toolserver/money/books/months.py",
        "removing rows pauses no longer while a service writes to the same file",
        "(SHORT_REST if self.quiet >= ALONE else REST)",
        "(SHORT_REST if self.quiet >= 0 else REST)",
        "tests/money/books/test_sql_removal.py",
    ),
    fault(
        "toolserver/money/books/month_proof.py",
        "the signatures of receipts are not checked",
        "elif not key.verifies(",
        "elif False and not key.verifies(",
    ),
    fault(
        "toolserver/money/books/month_proof.py",
        "what a month says of the money on the chain is not compared with its transfers",
        "if said.get((way, state)) != self._moved.get((way, state)):",
        "if False:",
        "tests/money/books/test_month_close.py",
    ),
    fault(
        "toolserver/money/books/sql_month_scratch.py",
        "a call may be settled with another amount than was reserved",
        "WHERE (s.buyer, s.amount) IS NOT (first.buyer, first.amount)",
        "WHERE s.buyer IS NOT first.buyer",
        "tests/money/books/test_month_proof.py",
    ),
    fault(
        "toolserver/money/books/month_proof.py",
        "an archive without a month between two others is accepted",
        "facts.problems.extend(find_gap(before.signed, facts.signed))",
        "facts.problems.extend(())",
    ),
    fault(
        "toolserver/money/books/sql_months.py",
        "a month may be stored that does not follow the last one",
        "if statement.previous != last:",
        "if statement.previous is not last is None:",
    ),
    fault(
        "toolserver/money/books/sql_months.py",
        "credits that were given back are lost with the calls that are removed",
        'total[1] += head.amount * kinds.count("reverse")',
        'total[1] += head.amount * kinds.count("reversed")',
        "tests/money/books/test_sql_removal.py",
    ),
    fault(
        "toolserver/money/books/sql_books.py",
        "credits owed by transfers and by accounts are not compared",
        "    if said != owed:\n",
        "    if said < 0:\n",
    ),
)
