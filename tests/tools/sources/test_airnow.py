"""AirNow's reporting areas."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

import tools.simulated.airnow  # noqa: F401 - registers its routes
from tests.tools.desk import NOW, ask, fetch
from tools.free.air_quality import nearest
from tools.parsing.places import DEFAULT, Place
from tools.simulated.airnow import areas
from tools.simulated.sky import air
from tools.sources.airnow import REPORTING_AREAS, Area, newest, offset, parse
from toolserver.upstream.decode import parse_body
from toolserver.upstream.source import SourceChanged, SourceEmpty, SourceError
from toolserver.world.model import World

ROW = "01/15/27|01/15/27|{time}|{zone}|0|{kind}|N|{name}|TX|32.3500|-95.3000|{pollutant}|{aqi}|Good|No||Texas"


def row(name="Tyler", pollutant="PM2.5", aqi="16", kind="O", zone="CST", time="02:00"):
    return ROW.format(name=name, pollutant=pollutant, aqi=aqi, kind=kind, zone=zone, time=time)


def document(*rows):
    filled = [row(name=f"Area {i}") for i in range(200)]
    return "\r\n".join([*rows, *filled]).encode("cp1252")


def test_an_area_has_the_highest_index_of_its_pollutants_at_the_time_it_was_measured():
    first, *rest = parse(document(row(), row(pollutant="OZONE", aqi="61"), row(pollutant="PM10", aqi="7")), None)
    measured = datetime(2027, 1, 15, 8, tzinfo=UTC)
    assert first == Area("Tyler", "TX", 32.35, -95.3, 61, "OZONE", measured)
    assert len(rest) == 200


def test_forecasts_summaries_and_unreadable_rows_are_no_observations():
    rows = [row(kind="F", aqi=""), row(kind="Y"), row(aqi=""), row(aqi="many"), "a line", row(name="B")]
    assert next(area.name for area in parse(document(*rows), None)) == "B"


def test_a_zone_nobody_knows_leaves_the_time_open():
    found = parse(document(row(zone="XYZ"), row(name="B", zone="CDT"), row(name="C", time="")), None)
    assert [area.time for area in found[:3]] == [None, datetime(2027, 1, 15, 7, tzinfo=UTC), None]
    assert newest(found) == datetime(2027, 1, 15, 8, tzinfo=UTC)


@pytest.mark.parametrize(
    ("zone", "lon", "hours"),
    [
        ("CST", -95.3, -6),
        ("CST", 116.47, 8),
        ("AST", 51.5, 3),
        ("AST", -66.1, -4),
        ("EST", -74, -5),
        ("PST", -118.2, -8),
        ("HST", -157.9, -10),
        ("ChST", 144.8, 10),
        ("IST", 77.2, 5.5),
        ("+08:00", 116.47, 8),
        ("UTC-5", 116.47, -5),
        ("-0330", 0, -3.5),
    ],
)
def test_an_abbreviation_means_what_it_means_at_its_place_and_an_offset_what_it_says(zone, lon, hours):
    assert offset(zone, lon) == hours


def test_a_zone_that_cannot_be_that_of_its_place_leaves_the_time_open():
    with pytest.raises(ValueError, match="MDT"):
        offset("MDT", 116.47)
    (first, *_) = parse(document(row(zone="PDT").replace("-95.3000", "116.4700")), None)
    assert first.time is None


def test_posts_abroad_have_their_country_and_the_time_of_their_clocks():
    beijing = row(name="Beijing", zone="CST", time="16:00").replace("|TX|32.3500|-95.3000|", "|CN|39.9500|116.4700|")
    (first, *_) = parse(document(beijing), None)
    assert (first.name, first.state, first.time) == ("Beijing", "CN", datetime(2027, 1, 15, 8, tzinfo=UTC))


def test_a_measurement_of_the_future_is_refused():
    areas = parse(document(row(name="Tyler", time="04:00")), None)
    now = datetime(2027, 1, 15, 8, tzinfo=UTC)
    with pytest.raises(SourceChanged, match="in the future"):
        nearest([area for area in areas if area.name == "Tyler"], Place(32.35, -95.3), now)
    assert nearest(areas[1:], Place(32.35, -95.3), now).area.time == now


def test_names_are_read_in_either_encoding():
    utf8 = document().decode("cp1252").replace("Area 7", "Cañon City").encode()
    cp1252 = document(row(name="Cañon City"))
    assert "Cañon City" in {area.name for area in parse(utf8, None)}
    assert "Cañon City" in {area.name for area in parse(cp1252, None)}


@given(st.lists(st.integers(1, 500), min_size=200, max_size=210))
def test_no_area_is_invented_or_dropped(indices):
    rows = [row(name=f"N{i}", aqi=str(aqi)) for i, aqi in enumerate(indices)]
    found = parse("\n".join(rows).encode(), None)
    assert [(area.name, area.aqi) for area in found] == [(f"N{i}", aqi) for i, aqi in enumerate(indices)]


def test_the_twin_has_the_air_of_the_world_and_local_times():
    world, found = World(1, NOW), {(area.name, area.state): area for area in ask(REPORTING_AREAS)}
    for known in areas(world):
        area = found[known.name, known.state]
        assert (area.aqi, area.pollutant) == (known.aqi, "PM2.5")
        assert area.time == datetime.fromtimestamp(NOW, UTC)
    assert {"CN", "QA", "PK"} <= {state for _, state in found}
    assert found["Central LA CO", "CA"].aqi == air(world, *DEFAULT, NOW).us_aqi
    assert Place(34.05, -118.24) == DEFAULT


def test_what_is_not_the_file_is_refused():
    asked = REPORTING_AREAS.request
    reply = fetch(World(1, NOW), asked)
    storage_error = fetch(World(1, NOW), asked, form="error200").body
    wrong = [b"", b"<html></html>", reply.body[: len(reply.body) // 2], storage_error]
    for body in wrong:
        with pytest.raises(SourceError):
            parse_body(REPORTING_AREAS, asked, None, body)
    with pytest.raises(SourceEmpty):
        parse_body(REPORTING_AREAS, asked, None, fetch(World(1, NOW), asked, form="empty").body)


def test_indices_that_are_all_zero_are_no_clean_air():
    with pytest.raises(SourceChanged):
        parse("\n".join(row(name=f"N{i}", aqi="0") for i in range(200)).encode(), None)
