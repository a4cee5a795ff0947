"""NASA FIRMS: tables read by header, sentences instead of tables, satellites and regions."""

import csv
import io
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

import tools.simulated.firms  # noqa: F401 - registers its routes
from tests.tools.desk import NOW, ask, fetch
from tools.simulated.fires import SATELLITES, pixels
from tools.sources.firms import (
    FILES,
    FIRES_AREA,
    REGIONS,
    Detection,
    FireFile,
    newest,
    parse,
    request_area,
    request_file,
)
from toolserver.upstream.decode import parse_body
from toolserver.upstream.source import (
    SourceChanged,
    SourceDown,
    SourceEmpty,
    SourceError,
    SourceLimited,
    SourceRefused,
    SourceUnusable,
)
from toolserver.world import answers
from toolserver.world.model import Edits, World

MAINLAND, ALASKA = (REGIONS["USA_contiguous_and_Hawaii"], REGIONS["Alaska"])
FILE = FireFile("NOAA-20", "USA_contiguous_and_Hawaii")
HEADER = (
    "latitude,longitude,bright_ti4,scan,track,acq_date,acq_time,satellite,confidence,version,bright_ti5,frp,daynight"
)
KEYS = {"FIRMS_MAP_KEY": "sim-1"}


def row(lat="38.5", lon="-121.25", time="0915", satellite="N20", confidence="nominal", frp="12.5", daynight="N"):
    return f"{lat},{lon},330.1,0.4,0.6,2027-01-15,{time},{satellite},{confidence},2.0NRT,290.1,{frp},{daynight}"


def table(*rows):
    return "\n".join([HEADER, *rows]) + "\n"


def test_the_recorded_excerpt_parses_to_its_values_without_the_row_that_is_nowhere(sample):
    found = parse(sample("nasa-firms/viirs-area-excerpt-2026-06.csv").decode(), None)
    assert len(found) == 6
    assert found[0] == Detection(
        63.00197, 78.7598, 183.89, "low", datetime(2026, 6, 27, 5, 21, tzinfo=UTC), "Suomi NPP", True
    )
    assert [fire.confidence for fire in found] == ["low", "low", "nominal", "nominal", "high", "nominal"]


@pytest.mark.parametrize(
    "name", ["nasa-firms/modis-global-24h-2025-11-trimmed.csv", "nasa-firms/modis-6.0-world-1day-2018-trimmed.csv"]
)
def test_recorded_files_of_another_instrument_are_read_by_their_header(sample, name):
    text = sample(name).decode()
    raw = list(csv.DictReader(io.StringIO(text)))
    found = parse(text, None)
    assert [(f.lat, f.lon, f.frp_mw) for f in found] == [
        (float(r["latitude"]), float(r["longitude"]), float(r["frp"])) for r in raw
    ]
    for fire, r in zip(found, raw, strict=True):
        percent = int(r["confidence"])
        assert fire.confidence == ("low" if percent < 30 else "nominal" if percent < 80 else "high")
        assert f"{fire.time:%Y-%m-%d %H%M}" == f"{r['acq_date']} {r['acq_time']}"


def test_the_recorded_refusal_is_one_with_either_status(sample):
    text = sample("nasa-firms/error-400-invalid-map-key.txt").decode()
    for source in (MAINLAND, FIRES_AREA):
        with pytest.raises(SourceRefused, match="Invalid MAP_KEY"):
            source.parse(text, FILE)
    for form in ("auth", "error200"):
        with pytest.raises(SourceRefused):
            ask(FIRES_AREA, form=form, keys=KEYS)
    with pytest.raises(SourceRefused):
        ask(FIRES_AREA, keys={"FIRMS_MAP_KEY": "stolen"})
    with pytest.raises(SourceLimited):
        ask(FIRES_AREA, form="limited", keys=KEYS)
    with pytest.raises(SourceChanged, match="temporarily not available"):
        ask(MAINLAND, FILE, form="error200")


def test_requests_name_satellite_and_region_and_the_area_needs_a_key():
    assert request_file(FireFile("Suomi NPP", "Alaska"), {}).url == (
        "https://firms.modaps.eosdis.nasa.gov/data/active_fire/suomi-npp-viirs-c2/csv/SUOMI_VIIRS_C2_Alaska_24h.csv"
    )
    assert request_file(FILE, {}).url.endswith("/noaa-20-viirs-c2/csv/J1_VIIRS_C2_USA_contiguous_and_Hawaii_24h.csv")
    assert request_area(None, {}) is None
    assert request_area(None, KEYS).url.endswith("/api/area/csv/sim-1/VIIRS_NOAA20_NRT/-170,15,-50,72/2")
    with pytest.raises(SourceUnusable):
        ask(FIRES_AREA)


coordinates = st.tuples(st.floats(-89, 89).map(lambda x: round(x, 5)), st.floats(-179, 179).map(lambda x: round(x, 5)))


@given(st.lists(st.one_of(st.none(), coordinates), max_size=30))
def test_no_fire_is_invented_and_only_rows_without_coordinates_are_dropped(places):
    rows = [row("", "") if place is None else row(*place) for place in places]
    known = [place for place in places if place is not None]
    if known and not any(lat or lon for lat, lon in known):
        return
    assert [(fire.lat, fire.lon) for fire in parse(table(*rows), FILE)] == known


@pytest.mark.parametrize(
    ("written", "confidence"),
    [("l", "low"), ("High", "high"), ("nominal", "nominal"), ("29", "low"), ("30", "nominal"), ("80", "high")],
)
def test_confidence_is_a_word_a_letter_or_percent(written, confidence):
    assert parse(table(row(confidence=written)), FILE)[0].confidence == confidence


@pytest.mark.parametrize(
    ("written", "clock"), [("0005", "00:05"), ("5", "00:05"), ("521", "05:21"), ("2359", "23:59"), ("0", "00:00")]
)
def test_the_time_is_four_digits_or_fewer(written, clock):
    assert f"{parse(table(row(time=written)), FILE)[0].time:%H:%M}" == clock


@pytest.mark.parametrize(
    "change",
    [
        {"lat": "91"},
        {"frp": ""},
        {"frp": "-1"},
        {"time": "0999"},
        {"time": "noon"},
        {"confidence": ""},
        {"lat": "0", "lon": "0"},
    ],
)
def test_a_row_that_cannot_be_is_a_changed_format(change):
    with pytest.raises((ValueError, SourceChanged)):
        parse(table(row(**change)), FILE)


def test_an_unknown_satellite_keeps_its_code_and_daylight_may_be_missing():
    fire = parse(table(row(satellite="N99", daynight="")), FILE)[0]
    assert (fire.satellite, fire.by_day) == ("N99", None)
    with pytest.raises(SourceChanged, match="no column frp"):
        parse(table(row()).replace("frp", "power"), FILE)


def test_the_mainland_always_burns_and_alaska_need_not():
    asked = request_file(FILE, {})
    empty = fetch(World(1, NOW), asked, form="empty").body
    with pytest.raises(SourceEmpty):
        parse_body(MAINLAND, asked, FILE, empty)
    assert parse_body(ALASKA, asked, FILE, empty) == ()
    assert newest(()) is None
    assert (MAINLAND.newest_max_s, ALASKA.newest_max_s) == (64800, None)


@pytest.mark.parametrize("satellite", list(FILES))
def test_the_twin_shows_what_the_satellites_saw(satellite):
    world = World(1, NOW)
    sim = SATELLITES[FILES[satellite][1]]
    known = pixels(world, sim)
    found = [
        *ask(MAINLAND, FireFile(satellite, "USA_contiguous_and_Hawaii")),
        *ask(ALASKA, FireFile(satellite, "Alaska")),
    ]
    assert sorted((f.lat, f.lon, f.frp_mw, f.confidence, f.time.timestamp()) for f in found) == sorted(
        (p.lat, p.lon, p.frp, p.confidence, p.at) for p in known
    )
    assert {f.satellite for f in found} == {satellite}
    assert all(NOW - 86400 < f.time.timestamp() <= NOW for f in found)


@pytest.mark.slow("days of the simulated sky")
def test_the_simulated_sky_is_watched_by_three_satellites_and_never_for_six_hours_by_none():
    for hours in range(0, 48, 5):
        world = World(1, NOW + 3600 * hours)
        seen = [pixel for satellite in SATELLITES.values() for pixel in pixels(world, satellite)]
        assert 2500 < len(seen) < 5000
        assert max(pixel.at for pixel in seen) > world.now - 6 * 3600


def test_an_injected_fire_is_seen_by_noaa_20():
    event = {"kind": "fire", "at": NOW - 600, "lat": 40.0, "lon": -121.5, "frp": 1234.5}
    found = ask(MAINLAND, FILE, world=World(1, NOW, Edits(events=[event])))
    assert max(found, key=lambda fire: fire.frp_mw)[:3] == (40.0, -121.5, 1234.5)


def test_the_area_query_sees_two_days_and_the_same_fires():
    area = ask(FIRES_AREA, keys=KEYS)
    assert {*ask(MAINLAND, FILE), *ask(ALASKA, FireFile("NOAA-20", "Alaska"))} < set(area)
    assert min(fire.time for fire in area).timestamp() < NOW - 40 * 3600


def test_what_is_not_the_file_is_refused_and_the_drifted_form_is_read():
    asked = request_file(FILE, {})
    reply = fetch(World(1, NOW), asked)
    assert ask(MAINLAND, FILE, form="drift") == ask(MAINLAND, FILE)
    for wrong in (b"", b"<!DOCTYPE html><html></html>", reply.body[:4000], answers.zeros(reply, NOW).body):
        with pytest.raises(SourceError):
            parse_body(MAINLAND, asked, FILE, wrong)
    with pytest.raises(SourceDown):
        ask(MAINLAND, FireFile("NOAA-20", "Atlantis"))
