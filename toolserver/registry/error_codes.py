"""Builds the table of error codes from the exceptions that declare them (toolserver/errors.py).

Error bodies, error pages, llms.txt and the API description are all written from this table.
"""

from collections.abc import Iterator, Mapping
from typing import Any, TypeAlias

from toolserver.core.caller import mask_secrets
from toolserver.errors import CallRejected
from toolserver.money.purchases.credit_price import PRICING
from toolserver.registry.site_facts import PAYMENTS, SiteFacts

ErrorCode: TypeAlias = type[CallRejected]
"""One error code: `code`, `status`, `title`, `meaning`, `advice`, `members` and `topic` of the class."""


class ErrorTable(Mapping[str, ErrorCode]):
    """Every declared error code by name, ordered by HTTP status and then by declaration."""

    def __getitem__(self, code: str) -> ErrorCode:
        return CallRejected.declared[code]

    def __iter__(self) -> Iterator[str]:
        return iter(sorted(CallRejected.declared, key=lambda code: CallRejected.declared[code].status))

    def __len__(self) -> int:
        return len(CallRejected.declared)


PROBLEMS = ErrorTable()


def concerns_payment(problem: ErrorCode) -> bool:
    """Return True if the code can only occur on a service that sells."""
    return problem.topic != "request"


def with_status(status: int) -> list[ErrorCode]:
    """Return the error codes with an HTTP status."""
    return [problem for problem in PROBLEMS.values() if problem.status == status]


def with_topic(*topics: str) -> list[ErrorCode]:
    """Return the error codes of some parts of the service."""
    return [problem for problem in PROBLEMS.values() if problem.topic in topics]


def example(problem: ErrorCode, *, facts: SiteFacts, request_id: str) -> dict[str, Any]:
    """Return an example body, for documents."""
    return body(problem.code, problem.meaning.replace("`", ""), facts=facts, request_id=request_id)


def body(code: str, detail: str, *, facts: SiteFacts, request_id: str, **extra: Any) -> dict[str, Any]:
    """Return the JSON body of a failure: RFC 9457, except that payment failures follow the specification."""
    problem = PROBLEMS[code]
    if problem.status == 402:
        head: dict[str, Any] = {"error": code, "signup": facts.url(PAYMENTS), "pricing": PRICING}
    else:
        url = facts.url(f"/problems/{code}")
        head = {"type": url, "title": problem.title, "status": problem.status, "error": code}
    if "visitor_token" in extra:
        extra["visitor_token"] = f"POST {facts.url(extra['visitor_token'])}"
    members: dict[str, Any] = _mask({"detail": detail, "request_id": request_id, **extra})
    return {**head, **members}


def _mask(value: Any) -> Any:
    """Return the value with everything that looks like a secret masked, because refusals repeat names from callers."""
    if isinstance(value, str):
        return mask_secrets(value)
    if isinstance(value, dict):
        return {mask_secrets(name): _mask(each) for name, each in value.items()}
    return [_mask(each) for each in value] if isinstance(value, list | tuple) else value
