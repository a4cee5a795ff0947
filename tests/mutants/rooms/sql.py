"""Faults of the engines: groups, the seal of a file, errors, and connections beside a service."""

from tests.mutants.faults import fault

FAULTS = (
    fault(
        "toolserver/sql/group_commit.py",
        "an operation that fails leaves half of its writes",
        'db.execute("ROLLBACK TO one")',
        'db.execute("SELECT 1")',
        "tests/sql/test_transactions.py",
    ),
    fault(
        "toolserver/sql/seal_marks.py",
        "an older copy of a file is taken for the newest",
        "if here.commits < mark.commits:",
        "if here.commits < 0:",
        "tests/sql/test_sealed_file.py",
    ),
    fault(
        "toolserver/sql/errors.py",
        "rows that break a rule of a table are any error of the engine",
        "if isinstance(failure, sqlite3.IntegrityError):",
        "if isinstance(failure, sqlite3.InterfaceError):",
        "tests/sql/test_transactions.py",
    ),
    fault(
        "toolserver/sql/ledger_place.py",
        "a file that a service is writing to is not waited for",
        "except (DatabaseUnusable, TransactionLost) as failure:",
        "except TransactionLost as failure:",
        "tests/sql/test_maintenance.py",
    ),
    fault(
        "toolserver/sql/sqlite.py",
        "a file that was overwritten in place is written to",
        "!= self._identity or not self._is_ours():",
        "!= self._identity:",
        "tests/sql/test_file_guard.py",
    ),
)
