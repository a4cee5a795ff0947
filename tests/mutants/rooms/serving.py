"""Faults of the rooms that compose and serve."""

from tests.mutants.faults import fault

FAULTS = (
    fault(
        "toolserver/serving/readiness.py",
        "a stopping instance says that it runs",
        '{"running": not self._is_stopping(), **',
        '{"running": True, **',
        "tests/serving/test_readiness.py",
    ),
    fault(
        "toolserver/serving/money.py",
        "a new ledger begins beside the keys of a lost one",
        "    refuse_lost_ledger(settings.data_dir)\n",
        "",
        "tests/serving/test_money.py",
    ),
    fault(
        "toolserver/serving/money.py",
        "a simulated service uses a directory of real credits",
        "if marker.exists() != simulated:",
        "if marker.exists() and not simulated:",
        "tests/serving/test_money.py",
    ),
    fault(
        "toolserver/serving/webhooks.py",
        "an account is its own payer",
        "TokenAccount(standing.ref.ref, standing.payer, standing.paths)",
        "TokenAccount(standing.ref.ref, standing.ref.ref, standing.paths)",
        "tests/serving/test_webhooks.py",
    ),
    fault(
        "toolserver/app.py",
        "tools of allowances are listed without allowances",
        "if money.followed is not None and not await money.followed.keeps_allowances():",
        "if money.followed is not None and await money.followed.keeps_allowances():",
        "tests/test_app_parts.py",
    ),
)
