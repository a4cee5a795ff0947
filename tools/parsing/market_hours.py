"""Compute New York time and the hours of its exchanges, without a time zone database."""

from datetime import UTC, date, datetime, time, timedelta

OPENS, CLOSES = time(9, 30), time(16)
SATURDAY, SUNDAY = 5, 6


def new_york_offset(day: date) -> timedelta:
    """Return New York's offset from UTC: summer time runs from March's second Sunday to November's first."""
    summer = _sunday(day.year, 3, 2) <= day < _sunday(day.year, 11, 1)
    return timedelta(hours=-4 if summer else -5)


def _sunday(year: int, month: int, n: int) -> date:
    first = date(year, month, 1)
    return first + timedelta(days=(SUNDAY - first.weekday()) % 7 + 7 * (n - 1))


def from_new_york(local: datetime) -> datetime:
    """Return the instant that a New York clock time without a zone means."""
    return (local - new_york_offset(local.date())).replace(tzinfo=UTC)


def to_new_york(instant: datetime) -> datetime:
    """Return the New York clock time of an instant, without a zone."""
    utc = instant.astimezone(UTC).replace(tzinfo=None)
    return utc + new_york_offset((utc - timedelta(hours=5)).date())


def in_session(instant: datetime) -> bool:
    """Return True on a weekday within trading hours. Holidays are not known here."""
    local = to_new_york(instant)
    return local.weekday() < SATURDAY and OPENS <= local.time() < CLOSES
