"""Read times that callers give: in ISO 8601, with the zone that they name or in UTC."""

import re
from datetime import UTC, datetime

MOMENT = {"type": "string", "format": "date-time"}
_ZONE = re.compile(r"(Z|z|[+-][0-9]{2}:?[0-9]{2})$")


def add_zone(text: str) -> str:
    """Return the text of a time with a zone: UTC if it names none."""
    return text if _ZONE.search(text) else f"{text}Z"


def in_utc(time: datetime) -> datetime:
    """Return the same moment in UTC. Raises ValueError if an offset moves it out of the calendar."""
    try:
        return time.astimezone(UTC)
    except OverflowError:
        raise ValueError("must be within the years 1 to 9999 in UTC") from None
