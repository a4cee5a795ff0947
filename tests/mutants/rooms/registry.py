"""Faults of the registry."""

from tests.mutants.faults import fault

FAULTS = (
    fault(
        "toolserver/registry/error_codes.py",
        "a refusal repeats a token",
        '_mask({"detail": detail, "request_id": request_id, **extra})',
        '{"detail": detail, "request_id": request_id, **extra}',
        "tests/registry/test_error_codes.py",
    ),
    fault(
        "toolserver/registry/registry.py",
        "tools that were unlisted before are listed again",
        "unlisted=[*self._unlisted, *names]",
        "unlisted=[*names]",
        "tests/registry/test_registry.py",
    ),
)
