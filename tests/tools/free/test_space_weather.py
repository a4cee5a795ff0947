"""The space weather tool, and what its numbers are called."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

import tools.simulated.gfz
import tools.simulated.swpc  # noqa: F401 - registers its routes
from tests.tools.desk import NOW
from tools.free.space_weather import flare_class, flare_letter, in_force, space_weather, storm_level
from tools.simulated.sun import bulletins
from tools.sources.swpc import Bulletin
from toolserver.upstream.source import SourceError
from toolserver.world.model import ROUTES, Edits, World

T = datetime.fromtimestamp(NOW, UTC)
HOUR = timedelta(hours=1)
KP = ("kp_index", "kp_time", "storm_level")
WIND = ("solar_wind_speed_kms", "solar_wind_density_cm3", "solar_wind_time")
FLARE = ("flare_peak_class_24h", "flare_class_letter", "flare_peak_time")


@pytest.mark.parametrize(
    ("flux", "name"),
    [
        (3.4e-6, "C3.4"),
        (2.3e-6, "C2.3"),
        (9.99e-6, "C9.9"),
        (9.9999999e-6, "C9.9"),
        (1e-5, "M1.0"),
        (2.5e-4, "X2.5"),
        (2.8e-3, "X28.0"),
        (1e-7, "B1.0"),
        (9.9e-8, "A9.9"),
        (5e-9, "A0.5"),
    ],
)
def test_the_class_of_a_flux(flux, name):
    assert flare_class(flux) == name
    assert flare_letter(flux) == name[0]


@given(st.floats(1e-9, 1e-2))
def test_a_class_never_says_more_than_the_flux(flux):
    name = flare_class(flux)
    decade = {"A": 1e-8, "B": 1e-7, "C": 1e-6, "M": 1e-5, "X": 1e-4}[name[0]]
    assert float(name[1:]) * decade <= flux * (1 + 1e-6) < (float(name[1:]) + 0.1) * decade * (1 + 1e-5)


def bulletin(serial, issued, *, code="WARPX1", valid_to=None, ends=None, cancels=False):
    return Bulletin("P11W", code, "warning", "Protons", issued, "…", serial, valid_to, ends, cancels)


def test_a_cancellation_removes_the_serial_it_names_in_its_own_code_and_itself():
    told = [
        bulletin(7, T - 2 * HOUR),
        bulletin(7, T - 3 * HOUR, code="ALTEF3"),
        bulletin(8, T - HOUR, ends=7, cancels=True),
        bulletin(9, T - HOUR / 2),
    ]
    assert [(b.code, b.serial) for b in in_force(told, T)] == [("WARPX1", 9), ("ALTEF3", 7)]


def test_an_extension_stands_for_what_it_extends():
    told = [bulletin(7, T - 9 * HOUR, valid_to=T + HOUR), bulletin(8, T - HOUR, valid_to=T + 9 * HOUR, ends=7)]
    assert [b.serial for b in in_force(told, T)] == [8]


def test_a_bulletin_is_in_force_until_it_says_or_for_a_day():
    told = [
        bulletin(1, T - 30 * HOUR, valid_to=T),
        bulletin(2, T - HOUR, valid_to=T - HOUR / 2),
        bulletin(3, T - 24 * HOUR),
        bulletin(4, T - 25 * HOUR),
    ]
    assert [b.serial for b in in_force(told, T)] == [3, 1]


async def test_space_weather_is_that_of_the_world(compose):
    for hours in range(0, 72, 7):
        world = World(1, NOW + 3600 * hours + 17)
        made = await compose(space_weather, world=world)
        expected = ROUTES.expectations["space-weather"](world, {})
        assert {name: made.json[name] for name in expected} == expected
        assert made.json["storm_level"] == storm_level(made.json["kp_index"])
        assert made.json["flare_peak_class_24h"][0] == made.json["flare_class_letter"]
        assert made.notes.warnings == []


async def test_a_storm_is_not_estimated_away_when_three_hours_begin(compose):
    midnight = NOW // 10800 * 10800
    world = World(1, midnight + 120, Edits(pins={"kp.index": [(midnight - 10800, midnight, 5.67), (midnight, 2e9, 6)]}))
    made = await compose(space_weather, world=world)
    assert made.json["kp_estimated"] == 5.67
    assert made.json["kp_estimated_time"] == f"{datetime.fromtimestamp(midnight - 60, UTC):%Y-%m-%dT%H:%M:%SZ}"


async def test_cancelled_warnings_are_not_shown(compose):
    shown = 0
    for day in range(10):
        world = World(1, NOW + 86400 * day)
        made = await compose(space_weather, world=world)
        cancelled = {
            line.removeprefix("Cancel Serial Number: ")
            for told in bulletins(world)
            for line in told.lines
            if line.startswith("Cancel Serial")
        }
        assert cancelled
        assert len(made.json["active_alerts"]) <= 5
        for alert in made.json["active_alerts"]:
            serial = alert["message"].split("Serial Number: ")[1].split()[0]
            assert alert["code"] != "WARPX1" or serial not in cancelled
            assert "CANCEL" not in alert["message"]
            shown += 1
    assert shown > 10


async def test_an_x_class_flare_is_told_at_once(compose):
    world = World(1, NOW + 33, Edits(pins={"xray.flux": [(NOW + 33, 2e9, 2.5e-4)]}))
    made = await compose(space_weather, world=world)
    assert (made.json["flare_peak_class_24h"], made.json["flare_class_letter"]) == ("X2.5", "X")


async def test_each_group_has_its_fallback(compose):
    made = await compose(space_weather, down={"SWPC.planetary_k", "SWPC.solar_wind_1m"})
    statuses = {note.source.name: note.status for note in made.notes.sources}
    assert statuses["GFZ.kp_index"] == statuses["SWPC.propagated_solar_wind"] == "fallback"
    assert None not in [made.json[name] for name in (*KP, *WIND)]
    assert {warning.code for warning in made.notes.warnings} == {"fallback_used"}


@pytest.mark.parametrize(
    ("down", "missing"),
    [
        ({"SWPC.planetary_k", "GFZ.kp_index"}, KP),
        ({"SWPC.planetary_k_1m"}, ("kp_estimated", "kp_estimated_time")),
        ({"SWPC.solar_wind_1m", "SWPC.propagated_solar_wind"}, WIND),
        ({"SWPC.goes_xray_1d"}, FLARE),
        ({"SWPC.alerts"}, ("active_alerts",)),
    ],
)
async def test_a_group_that_cannot_be_read_is_null_and_never_quiet(compose, down, missing):
    made = await compose(space_weather, down=down)
    assert {name for name, value in made.json.items() if value is None} == set(missing)
    assert [warning.code for warning in made.notes.warnings] == ["section_unavailable"]


async def test_when_nobody_answers_nothing_is_invented(compose):
    with pytest.raises(SourceError):
        await compose(space_weather, down={"*"})
