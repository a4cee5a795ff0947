"""Timestamps, and models whose fields may be absent."""

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

from toolserver.core.models import DataPoint, Payload, Sparse, Timestamp, TopLevel, iso, iso_ms, iso_or_none

NOON = datetime(2026, 7, 1, 12, 0, 0, 999_999, tzinfo=UTC)


def test_a_time_is_written_in_utc_with_whole_seconds():
    assert iso(NOON) == "2026-07-01T12:00:00Z"
    assert iso(NOON.astimezone(timezone(timedelta(hours=-5)))) == "2026-07-01T12:00:00Z"
    assert (iso_or_none(None), iso_or_none(NOON)) == (None, "2026-07-01T12:00:00Z")


@given(st.integers(min_value=-60_000_000_000_000, max_value=250_000_000_000_000))
def test_a_time_with_milliseconds_is_that_of_its_own_second(ms):
    whole = datetime.fromtimestamp(0, UTC) + timedelta(milliseconds=ms)
    assert iso_ms((ms + 0.5) / 1000) == whole.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def test_a_timestamp_needs_a_time_zone_and_is_a_string_in_json():
    adapter = TypeAdapter(Timestamp)
    assert adapter.dump_python(adapter.validate_python(NOON), mode="json") == "2026-07-01T12:00:00Z"
    assert adapter.json_schema(mode="serialization") == {"type": "string", "format": "date-time"}
    with pytest.raises(ValidationError):
        adapter.validate_python(datetime(2026, 7, 1))


class Price(Payload):
    usd: float


class Part(Sparse):
    one: int | None = None
    two: int | None = None


@pytest.mark.parametrize("number", [float("nan"), float("inf"), float("-inf")])
def test_a_number_that_json_does_not_know_never_validates(number):
    with pytest.raises(ValidationError):
        Price(usd=number)


def test_a_payload_cannot_be_changed_after_it_is_made():
    with pytest.raises(ValidationError):
        Price(usd=1.0).usd = 2.0  # type: ignore[misc]


def test_a_sparse_field_is_absent_unless_it_was_given_and_null_when_it_was_given_as_null():
    assert Part(one=None).model_dump(mode="json") == {"one": None}
    assert Part().model_dump(mode="json") == {}
    assert Part(two=2).model_dump_json() == '{"two":2}'


def test_top_level_and_sparse_payloads_are_payloads():
    assert issubclass(TopLevel, Payload)
    assert issubclass(Sparse, Payload)


def test_points_sort_by_their_time_before_their_value():
    early, late = DataPoint(NOON, 9.0), DataPoint(NOON + timedelta(seconds=1), 1.0)
    assert sorted([late, early]) == [early, late]
