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
    fault(
        "toolserver/registry/site_facts.py",
        "one credit is written in the plural",
        "credit{'' if operation.credits == 1 else 's'}",
        "credits",
        "tests/registry/test_site_facts.py",
    ),
    fault(
        "toolserver/registry/error_codes.py",
        "secrets within lists are shown",
        "return [_mask(each) for each in value] if isinstance(value, list | tuple) else value",
        "return value",
        "tests/registry/test_error_codes.py",
    ),
)
