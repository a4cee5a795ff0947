"""Faults of the Model Context Protocol."""

from tests.mutants.faults import fault

FAULTS = (
    fault(
        "toolserver/mcp/credentials.py",
        "a spent token is lost",
        "if other != token] + [token]",
        "if other != token]",
        "tests/mcp/test_credentials.py",
    ),
)
