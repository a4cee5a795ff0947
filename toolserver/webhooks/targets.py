"""Check what subscribers request: a target that the egress guard allows, and headers that cannot pass for ours."""

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
    """Return the URL to deliver to. Accepts a name without an address, as it is checked before every delivery.

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
    """Return the custom headers of deliveries. Raises InvalidArguments, whose text never quotes a value."""
    if len(given) > MOST_HEADERS:
        raise refuse("headers", f"Give at most {MOST_HEADERS} headers.", "too_long")
    for name, value in given.items():
        if not _NAME.fullmatch(name):
            raise refuse("headers", "A header's name may have only letters, digits and hyphens.", "invalid_header")
        if _OURS.match(name.lower()):
            raise refuse("headers", f"The header {name} is set by the service.", "reserved_header")
        if len(value) > MOST_VALUE or not value.isascii() or not value.isprintable():
            raise refuse(
                "headers",
                f"The value of {name} must be printable ASCII of at most {MOST_VALUE} characters.",
                "invalid_header",
            )
    return dict(given)


def refuse(loc: str, message: str, kind: str) -> InvalidArguments:
    """Return the error for one invalid argument."""
    return InvalidArguments(f"{loc}: {message}", errors=[{"loc": loc, "msg": message, "type": kind}])
