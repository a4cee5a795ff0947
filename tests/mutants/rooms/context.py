"""Faults of what a tool is given."""

from tests.mutants.faults import fault

FAULTS = (
    fault(
        "toolserver/context/provenance.py",
        "an answer is stale as soon as half of what it used is",
        'return sum(n.status == "stale" for n in used) > share * len(used)',
        'return sum(n.status == "stale" for n in used) >= share * len(used)',
        "tests/context/test_provenance.py",
    ),
    fault(
        "toolserver/context/context.py",
        "the point before an instant is never the closest",
        "points[max(0, index - 1) : index + 1]",
        "points[max(0, index) : index + 1]",
        "tests/context/test_time_series.py",
    ),
    fault(
        "toolserver/context/context.py",
        "one key less than allowed has a series",
        "if len(table) > SERIES_KEYS:",
        "if len(table) >= SERIES_KEYS:",
        "tests/context/test_time_series.py",
    ),
)
