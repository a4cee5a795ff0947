"""Faults of what is written for other programs."""

from tests.mutants.faults import fault

FAULTS = (
    fault(
        "catalog/llm_tools.py",
        "tools of every tier are listed, whichever is chosen",
        "if wanted in (None, operation.tier)]",
        "if wanted in (wanted, operation.tier)]",
        "tests/catalog/test_llm_tools.py",
    ),
    fault(
        "catalog/hosts.py",
        "a host does not ask for the token that its file names",
        "    if inputs is not None:",
        "    if inputs is not None and not inputs:",
        "tests/catalog/test_hosts.py",
    ),
)
