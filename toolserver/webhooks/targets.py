"""What subscribers may ask for: a target that the egress guard allows, and headers that cannot pass for ours."""

import re
from collections.abc import Mapping

from yarl import URL

from toolserver.errors import InvalidArguments
from toolserver.webhooks.dns_lane import DnsLane, NameUnknown
from toolserver.webhooks.egress import EgressGuard, TargetRefused

MOST_HEADERS, MOST_VALUE = 10, 1024
_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,64}")
_OURS = re.compile(
    r"(x-service-|webhook-|content-|proxy-|sec-|accept|host$|user-agent$|connection$|keep-alive$|te$|trailer$"
    r"|transfer-encoding$|upgrade$|expect$|cookie$)"
)


async def check_target(guard: EgressGuard, lane: DnsLane, given: str) -> URL:
    """The URL to deliver to. A name that has no address yet is taken: it is judged again before every delivery.

    Raises:
        InvalidArguments: with the reason as the type of the error.
    """
    try:
        url = guard.check_url(given)
        await lane.resolve(url.raw_host or "")
    except NameUnknown:
        return url
    except TargetRefused as refused:
        raise refuse("webhook_url", str(refused), refused.reason) from None
    return url


def check_headers(given: Mapping[str, str]) -> dict[str, str]:
    """Custom headers of deliveries. Raises InvalidArguments; a value is never repeated in what is said."""
    if len(given) > MOST_HEADERS:
        raise refuse("headers", f"Give {MOST_HEADERS} headers at most.", "too_long")
    for name, value in given.items():
        if not _NAME.fullmatch(name):
            raise refuse("headers", "A header's name has letters, digits and hyphens only.", "invalid_header")
        if _OURS.match(name.lower()):
            raise refuse("headers", f"The header {name} is set by the service.", "reserved_header")
        if len(value) > MOST_VALUE or not value.isascii() or not value.isprintable():
            raise refuse("headers", f"The value of {name} is not printable ASCII of {MOST_VALUE}.", "invalid_header")
    return dict(given)


def refuse(loc: str, message: str, kind: str) -> InvalidArguments:
    """One argument that cannot be taken."""
    return InvalidArguments(f"{loc}: {message}", errors=[{"loc": loc, "msg": message, "type": kind}])
