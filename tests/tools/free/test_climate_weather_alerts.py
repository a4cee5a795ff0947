"""The climate_weather_alerts tool."""

import pytest
from pydantic import ValidationError

import tools.simulated.nws  # noqa: F401 - registers its routes
from tests.tools.desk import NOW
from tools.free.climate_weather_alerts import AREAS, climate_weather_alerts
from tools.sources.nws import ALL
from toolserver.errors import InvalidArguments
from toolserver.registry.registry import operation_of
from toolserver.upstream.source import SourceError
from toolserver.world.model import ROUTES, World

NWS = "NWS.alerts_active"
OPERATION = operation_of(climate_weather_alerts)


def checked(**arguments):
    return OPERATION.arguments.model_validate(arguments)


@pytest.mark.parametrize(
    "asked",
    [
        {},
        {"area": "OK"},
        {"event": "Flood Watch"},
        {"severity": "Extreme", "limit": 3},
        {"urgency": "Future", "area": "CA"},
        {"status": "Test"},
        {"limit": 100},
    ],
)
async def test_the_list_equals_the_world(compose, asked):
    world = World(1, NOW + 21)
    made = await compose(climate_weather_alerts, asked, world=world)

    expected = ROUTES.expectations["climate/weather-alerts"](world, {k: str(v) for k, v in asked.items()})
    assert (made.json["count"], made.json["total_matching"]) == (expected["count"], expected["total_matching"])
    assert [{"id": row["id"]} for row in made.json["data"]] == expected["data"]
    empty = dict.fromkeys(("area", "event", "severity", "urgency"))
    assert made.json["filters"] == empty | {"status": "Actual", "limit": 50} | asked
    cut = expected["total_matching"] > expected["count"]
    assert [(w.code, w.total) for w in made.notes.warnings] == [("truncated", expected["total_matching"])] * cut


async def test_alerts_come_newest_first_with_their_words_and_times(compose):
    made = await compose(climate_weather_alerts, {"limit": 100})
    sent = [row["sent"] for row in made.json["data"]]
    assert sent == sorted(sent, reverse=True)
    row = made.json["data"][0]
    assert row["areaDesc"]
    assert row["sender_name"].startswith("NWS ")
    assert row["web"] == "http://www.weather.gov"
    assert row["expires"].endswith("Z")
    assert {r["message_type"] for r in made.json["data"]} <= {"Alert", "Update", "Cancel"}


async def test_the_limit_is_applied_here_and_never_sent(compose):
    made = await compose(climate_weather_alerts, {"limit": 1})
    assert (made.json["count"], len(made.json["data"])) == (1, 1)
    assert made.json["total_matching"] > 100
    assert made.desk.asked == [(NWS, ALL)]


async def test_words_and_areas_may_be_written_in_any_case_and_are_shown_in_the_right_one(compose):
    made = await compose(
        climate_weather_alerts, {"area": "ok", "severity": "SEVERE", "urgency": "immediate", "status": "aCtUaL"}
    )
    assert made.desk.asked == [(NWS, ALL)]
    assert {(row["severity"], row["urgency"]) for row in made.json["data"]} <= {("Severe", "Immediate")}
    assert made.json["filters"]["severity"] == "Severe"


def test_spellings_of_one_question_are_one_question():
    named = checked(area="ok", severity="severe", event="flood  WATCH")
    assert named == checked(area="OK", severity="Severe", event="Flood Watch")


async def test_an_event_is_found_in_any_case(compose):
    exact = await compose(climate_weather_alerts, {"event": "Tornado Warning"})
    folded = await compose(climate_weather_alerts, {"event": "tornado warning"})
    assert exact.json["total_matching"] > 0
    assert folded.json == exact.json


async def test_an_event_that_nobody_knows_is_refused_with_the_nearest(compose):
    with pytest.raises(InvalidArguments) as refused:
        await compose(climate_weather_alerts, {"event": "tornado warnings"})
    assert refused.value.extra["did_you_mean"][0] == "Tornado Warning"
    assert "Tornado Warning" in refused.value.detail


@pytest.mark.parametrize(
    "arguments",
    [
        {"area": "XX"},
        {"area": "California"},
        {"area": ""},
        {"event": ""},
        {"event": "a" * 81},
        {"event": "Tornado Warning,Flood Watch"},
        {"event": "<b>"},
        {"event": "Tornado\n"},
        {"severity": "Bad"},
        {"severity": 4},
        {"urgency": "Now"},
        {"status": "Real"},
        {"limit": 0},
        {"limit": 101},
        {"limit": "many"},
    ],
)
def test_anything_else_is_refused(arguments):
    with pytest.raises(ValidationError):
        checked(**arguments)


def test_states_territories_and_waters_are_known():
    assert {"CA", "PR", "GU", "PZ", "LM"} <= AREAS
    assert len(AREAS) == 59 + 15


def test_the_schema_of_the_arguments_is_plain():
    properties = OPERATION.input_schema["properties"]
    assert properties["severity"] == {
        "type": "string",
        "enum": ["Extreme", "Severe", "Moderate", "Minor", "Unknown"],
        "description": "How grave it is, in the words of the NWS",
    }
    assert properties["limit"]["maximum"] == 100
    assert "anyOf" not in str(OPERATION.input_schema)


async def test_nothing_that_matches_is_an_answer(compose):
    made = await compose(climate_weather_alerts, {"area": "GU"})
    assert (made.json["data"], made.json["count"], made.json["total_matching"]) == ([], 0, 0)
    made = await compose(climate_weather_alerts, {"event": "volcano warning"})
    assert made.json["data"] == []
    assert made.json["filters"]["event"] == "Volcano Warning"


@pytest.mark.parametrize("faults", [{"down": {NWS}}, {"forms": {NWS: "empty"}}, {"forms": {NWS: "status:503"}}])
async def test_a_failure_is_not_an_empty_list(compose, faults):
    with pytest.raises(SourceError):
        await compose(climate_weather_alerts, **faults)
