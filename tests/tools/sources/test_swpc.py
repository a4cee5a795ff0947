"""NOAA's space weather: two forms of tables, two bands of X-rays, bulletins with cancellations."""

import json
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

import tools.simulated.swpc  # noqa: F401 - registers its routes
from tests.tools.desk import NOW, ask, fetch
from tools.parsing.kp_index import KpReading
from tools.simulated.sun import bulletins, flares_since, kp, kp_estimate, wind_density, wind_speed, xray
from tools.sources.swpc import (
    ALERTS,
    KP_ESTIMATE,
    KP_INDEX,
    PROPAGATED_WIND,
    SOLAR_WIND,
    XRAY_FLUX,
    SolarWind,
    parse_alerts,
    parse_kp,
    parse_kp_1m,
    parse_wind,
    parse_xray,
    request_xray,
)
from toolserver.upstream.decode import parse_body
from toolserver.upstream.source import SourceChanged, SourceDown, SourceEmpty, SourceError
from toolserver.world import answers
from toolserver.world.model import Edits, World

ALL = [KP_INDEX, KP_ESTIMATE, SOLAR_WIND, PROPAGATED_WIND, XRAY_FLUX, ALERTS]


def utc(*when):
    return datetime(*when, tzinfo=UTC)


def test_the_recorded_list_of_objects_parses_to_its_values(sample):
    raw = json.loads(sample("noaa-swpc/kp-index-objectform-2026-10.json"))
    found = parse_kp(raw, None)
    assert [reading.kp for reading in found] == [row["Kp"] for row in raw]
    assert found[0] == KpReading(utc(2026, 9, 25, 0), 3.67)
    assert found[-1] == KpReading(utc(2026, 10, 2, 6), 0.33)


def test_the_recorded_list_of_lists_parses_to_its_values(sample):
    raw = json.loads(sample("noaa-swpc/kp-index-listform-2026-02.json"))
    found = parse_kp(raw, None)
    assert [f"{reading.kp:.2f}" for reading in found] == [row[1] for row in raw[1:]]
    assert found[-1] == KpReading(utc(2026, 2, 9, 15), 2.0)


def test_a_header_in_lower_case_and_other_columns_are_read_by_name(sample):
    raw = json.loads(sample("noaa-swpc/kp-forecast-listform-2026-02.json"))
    assert parse_kp(raw, None)[0] == KpReading(utc(2026, 2, 2, 0), 2.33)


def test_recorded_minutes_give_the_newest_estimate(sample):
    found = parse_kp_1m(json.loads(sample("noaa-swpc/planetary_k_index_1m-2026-07.json")), None)
    assert found.newest == KpReading(utc(2026, 7, 29, 14, 36), 0.33)
    assert found.before == KpReading(utc(2026, 7, 29, 11, 59), 1.67)  # and 0 a minute later


def test_recorded_wind_parses_to_its_values_in_all_three_forms(sample):
    wind = parse_wind(json.loads(sample("noaa-swpc/rtsw_wind_1m-one-active-row-2026-09.json")), None)
    assert wind == SolarWind(utc(2026, 9, 6, 17, 20), 340.9, 4.82)
    ahead = parse_wind(json.loads(sample("noaa-swpc/propagated-solar-wind-1-hour-2026-09-trimmed.json")), None)
    assert ahead == SolarWind(utc(2026, 9, 6, 19, 33), 350.0, 6.37)
    retired = parse_wind(json.loads(sample("noaa-swpc/plasma-1-day-2026-03.json")), None)
    assert retired == SolarWind(utc(2026, 3, 27, 14, 44), 408.9, 0.22)


def test_recorded_x_rays_give_the_peak_of_the_long_band_alone(sample):
    raw = json.loads(sample("noaa-swpc/goes-xrays-1-day-2026-trimmed.json"))
    found = parse_xray(raw, "primary")
    long = {row["time_tag"]: row["flux"] for row in raw if row["energy"] == "0.1-0.8nm"}
    assert found.flux_wm2 == max(long.values())
    assert long[f"{found.time:%Y-%m-%dT%H:%M:%SZ}"] == found.flux_wm2
    assert found.newest == utc(2026, 8, 7, 23, 51)


def test_recorded_bulletins_parse_to_their_values(sample):
    raw = json.loads(sample("noaa-swpc/alerts-2026-09.json"))
    found = parse_alerts(raw, None)
    assert [b.code for b in found] == [
        "ALTEF3", "WATA20", "SUMPX1", "WARPX1", "SUMPC0", "WARPC0",
        "ALTPX1", "WARPX1", "ALTPC0", "WARPC0", "ALTTP4", "ALTTP2",
    ]  # fmt: skip
    assert [b.kind for b in found[:4]] == ["alert", "watch", "summary", "warning"]
    assert found[0].title == "Electron 2MeV Integral Flux exceeded 1,000pfu"
    assert found[0].issued_at.replace(microsecond=0) == utc(2026, 9, 6, 18, 24, 48)
    extended, cancelled, first = found[3], found[5], found[9]
    assert (extended.ends, extended.valid_to, extended.cancels) == (631, utc(2026, 9, 6, 12, 0), False)
    assert (cancelled.ends, cancelled.cancels) == (123, True)
    assert (first.serial, first.valid_to) == (123, utc(2026, 9, 5, 23, 59))


rows = st.lists(st.tuples(st.integers(0, 9), st.integers(1, 8)), min_size=8, max_size=60)


@given(rows)
def test_both_forms_of_kp_say_the_same_and_nothing_is_invented_or_dropped(rows):
    times = [f"{utc(2027, 1, 1) + timedelta(hours=3 * i):%Y-%m-%d %H:%M:%S}.000" for i in range(len(rows))]
    lists = [
        ["station_count", "time_tag", "kp"],
        *([str(n), time, f"{kp}.00"] for time, (kp, n) in zip(times, rows, strict=True)),
    ]
    objects = [
        {"time_tag": t.replace(" ", "T"), "Kp": k, "station_count": n} for t, (k, n) in zip(times, rows, strict=True)
    ]
    assert [reading.kp for reading in parse_kp(lists, None)] == [kp for kp, _ in rows]
    assert parse_kp(lists, None) == parse_kp(objects, None)


@pytest.mark.parametrize("kp", [9.34, -0.1, "NaN", "", True])
def test_a_kp_that_cannot_be_is_a_changed_format(kp):
    with pytest.raises(ValueError, match=r"number|outside|finite|convert"):
        parse_kp([{"time_tag": "2027-01-01T00:00:00", "Kp": kp}], None)


def test_a_kp_that_no_station_measured_is_no_quiet_sun():
    row = {"time_tag": "2027-01-01T00:00:00", "Kp": 0, "station_count": 0}
    assert parse_kp([row, row | {"Kp": None, "station_count": 8}], None) == ()
    assert KP_INDEX.least == 8
    with pytest.raises(SourceChanged, match="kp is 3"):
        parse_kp_1m([{"time_tag": "2027-01-01T00:00:00", "estimated_kp": 0, "kp": "3P"}], None)


def wind(**change):
    row = {"time_tag": "2027-01-15T07:59:00", "active": True, "proton_speed": 400, "proton_density": 5}
    return row | change


def test_only_the_active_spacecraft_counts_and_only_rows_with_both_numbers():
    rows = [
        wind(time_tag="2027-01-15T08:02:00", proton_speed=None),
        wind(time_tag="2027-01-15T08:01:00", proton_density=-9999.0),
        wind(time_tag="2027-01-15T08:03:00", active=False),
        wind(time_tag="2027-01-15T08:00:00", proton_speed="431.5", proton_density="0.00"),
        wind(),
    ]
    assert parse_wind(rows, None) == SolarWind(utc(2027, 1, 15, 8), 431.5, 0)
    with pytest.raises(SourceEmpty):
        parse_wind([rows[0], rows[2]], None)
    with pytest.raises(ValueError, match="outside"):
        parse_wind([wind(proton_speed=0), wind(proton_speed=3000)], None)


def minutes(*fluxes, energy="0.1-0.8nm"):
    times = [f"2027-01-15T0{i // 60}:{i % 60:02}:00Z" for i in range(len(fluxes))]
    return [{"time_tag": t, "flux": flux, "energy": energy} for t, flux in zip(times, fluxes, strict=True)]


def test_minutes_in_eclipse_and_the_short_band_are_left_out():
    body = minutes(None, 0, -1e-7, 2e-6, *[1e-6] * 60, energy="0.1-0.8nm") + minutes(9e-3, energy="0.05-0.4nm")
    found = parse_xray(body, "primary")
    assert (found.flux_wm2, found.time) == (2e-6, utc(2027, 1, 15, 0, 3))
    with pytest.raises(SourceEmpty, match="59 minutes"):
        parse_xray(minutes(*[1e-6] * 59), "primary")


def test_a_list_in_which_no_message_says_what_it_is_has_changed():
    message = {"product_id": "X", "issue_datetime": "2027-01-15 08:00:00.000", "message": "ALERT: Type II \r\nComment:"}
    (found,) = parse_alerts([message, message | {"message": "Good morning"}], None)
    assert (found.code, found.serial, found.title) == (None, None, "Type II")
    with pytest.raises(SourceChanged):
        parse_alerts([message | {"message": "Good morning"}], None)


def test_the_twins_tell_what_the_world_holds():
    world = World(1, NOW)
    assert [reading.kp for reading in ask(KP_INDEX)] == pytest.approx(
        [kp(world, NOW - 7200 - 10800 * i) for i in reversed(range(60))], abs=0.01
    )
    estimate = ask(KP_ESTIMATE)
    assert estimate.newest.kp == pytest.approx(kp_estimate(world, NOW), abs=0.01)
    assert estimate.before.kp == pytest.approx(kp(world, NOW - 10800), abs=0.01)
    for source in (SOLAR_WIND, PROPAGATED_WIND):
        found = ask(source)
        at = found.time.timestamp()
        assert NOW - 120 <= at < NOW
        assert found == SolarWind(found.time, wind_speed(world, at), wind_density(world, at))
    flares = flares_since(world, NOW - 27 * 3600)
    peak = ask(XRAY_FLUX, "primary")
    assert peak.flux_wm2 == max(xray(world, NOW - 60 * i, flares) for i in range(1440))
    assert ask(XRAY_FLUX, "secondary") == peak
    assert [b.code for b in ask(ALERTS)] == [told.code for told in bulletins(world)]
    assert any(b.cancels for b in ask(ALERTS))
    assert any(b.ends and not b.cancels for b in ask(ALERTS))


def test_the_simulated_sun_stays_within_its_bounds():
    world = World(1, NOW)
    values = [kp(world, NOW - 10800 * i) for i in range(800)]
    assert 0 <= min(values) < 1
    assert 6 < max(values) <= 7
    assert all(150 < wind_speed(world, NOW - 600 * i) < 2500 for i in range(800))


def test_pinned_values_show_everywhere():
    pins = {"xray.flux": [(NOW, 2e9, 2.5e-4)], "kp.index": [(NOW, 2e9, 8.67)], "solar_wind.speed": [(0, 2e9, 900.0)]}
    world = World(1, NOW, Edits(pins=pins))
    assert ask(XRAY_FLUX, "primary", world=world).flux_wm2 == 2.5e-4
    assert ask(KP_INDEX, world=world)[-1].kp == ask(KP_ESTIMATE, world=world).newest.kp == 8.67
    assert ask(SOLAR_WIND, world=world).speed_kms == 900


def test_the_drifted_forms_are_read_like_the_usual_ones():
    assert ask(KP_INDEX, form="drift") == ask(KP_INDEX)
    assert ask(SOLAR_WIND, form="drift") == ask(SOLAR_WIND)


@pytest.mark.parametrize("source", ALL, ids=lambda source: source.name)
def test_what_is_not_the_document_is_refused_and_other_forms_of_it_are_read(source):
    query = source.probe
    request = source.plan(query, {})
    reply = fetch(World(1, NOW), request)
    told = parse_body(source, request, query, reply.body)

    error = b'{"error":{"code":400,"message":"Unable to complete operation"}}'
    for wrong in (b"", b"[]", b"{}", error, b"<html></html>", reply.body[: len(reply.body) // 2]):
        with pytest.raises(SourceError):
            parse_body(source, request, query, wrong)
    for form in ("extra", "strings", "bom"):
        assert parse_body(source, request, query, answers.drift(reply, form).body) == told
    if source is not PROPAGATED_WIND:
        with pytest.raises(SourceError):
            parse_body(source, request, query, answers.drift(reply, "renamed").body)
    if source is not ALERTS:
        with pytest.raises(SourceError):
            parse_body(source, request, query, answers.zeros(reply, NOW).body)


def test_an_unknown_satellite_is_not_found():
    assert request_xray("secondary", {}).url.endswith("/json/goes/secondary/xrays-1-day.json")
    with pytest.raises(SourceDown):
        ask(XRAY_FLUX, "tertiary")
