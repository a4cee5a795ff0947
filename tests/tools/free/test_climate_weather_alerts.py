"""The climate_weather_alerts tool."""

import json
from datetime import UTC, datetime

import pytest
from pydantic import ValidationError

import tools.simulated.nws  # noqa: F401 - registers its routes
from tests.requirements import proves
from tests.tools.desk import NOW
from tools.free.climate_weather_alerts import (
    AREAS,
    SHORT_PAGE,
    climate_weather_alerts,
    count_fitting,
    list_alert,
    shorten_rows,
)
from tools.parsing.token_count import estimate_tokens
from tools.sources.nws import ALL, Alert
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
    rows = [(w.code, w.total) for w in made.notes.warnings if w.total is not None]
    assert rows == [("truncated", expected["total_matching"])] * cut


async def test_alerts_come_newest_first_with_their_words_and_times(compose):
    made = await compose(climate_weather_alerts, {"limit": 100})
    sent = [row["sent"] for row in made.json["data"]]
    assert sent == sorted(sent, reverse=True)
    row = (await compose(climate_weather_alerts, {"limit": 1})).json["data"][0]
    assert row["areaDesc"]
    assert row["headline"].startswith(row["event"])
    assert row["description"]
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


def tokens_of(made):
    return estimate_tokens(json.dumps(made.json, ensure_ascii=False, separators=(",", ":")))


@proves("answers.fit")
async def test_fifty_short_alerts_and_a_hundred_fit_into_a_context_window(compose):
    for limit, most in ((50, 8_000), (100, 20_000)):
        made = await compose(climate_weather_alerts, {"limit": limit})
        assert made.json["count"] == limit
        assert tokens_of(made) < 1.03 * most  # so exact is an estimate; tests/live/test_tokens.py counts
        assert made.json["next_cursor"] == made.json["data"][-1]["id"]
        told = [warning.message for warning in made.notes.warnings if warning.total is None]
        assert len(told) == 1
        assert "left out. text=whole has whole texts" in told[0]


@proves("answers.fit")
async def test_a_short_row_keeps_who_where_and_when_and_the_whole_text_can_be_had(compose):
    short = (await compose(climate_weather_alerts, {})).json["data"]
    whole = (await compose(climate_weather_alerts, {"text": "whole"})).json["data"]
    assert [row["id"] for row in short] == [row["id"] for row in whole]
    for cut, row in zip(short, whole, strict=True):
        kept = ("event", "severity", "urgency", "certainty", "sent", "effective", "expires", "message_type")
        assert [cut[name] for name in kept] == [row[name] for name in kept]
        assert cut["ends"] == (None if row["ends"] == row["expires"] else row["ends"])
        assert cut["headline"] is cut["description"] is cut["web"] is None
        assert row["headline"]
        assert row["description"]
        assert cut["areaDesc"].rstrip("…") == row["areaDesc"][: len(cut["areaDesc"].rstrip("…"))]


async def test_a_few_alerts_are_whole_without_asking(compose):
    for asked in ({"limit": 10}, {"limit": 10, "text": "whole"}):
        made = await compose(climate_weather_alerts, asked)
        assert all(row["headline"] and row["description"] for row in made.json["data"])
        assert [warning.total is not None for warning in made.notes.warnings] == [True]


NOON = datetime(2027, 1, 15, 12, tzinfo=UTC)
ALERT = Alert(
    id="urn:oid:1",
    event="Flood Watch",
    severity="Severe",
    urgency="Future",
    certainty="Possible",
    area="County, " * 50,
    sent=NOON,
    effective=NOON,
    expires=NOON,
    ends=NOON,
    message_type="Alert",
    headline="Flood Watch issued",
    description="Rain will fall on all. " * 100,
    sender="NWS Norman OK",
    web="http://www.weather.gov",
    url=None,
    references=frozenset(),
    states=frozenset({"OK"}),
)


class Warned:
    """Notes of warnings."""

    def __init__(self):
        self.said = []

    def warn(self, section, code, message):
        self.said.append(message)


@pytest.mark.parametrize(
    ("rows", "said", "area", "headline", "described"),
    [
        (1, None, 400, True, 2300),
        (10, "Descriptions are cut at ", 120, True, 300),
        (38, "Descriptions are left out.", 60, True, 0),
        (50, "Headlines, descriptions, senders, web addresses and ends that are `expires` are left out.", 40, False, 0),
    ],
)
def test_the_more_alerts_there_are_the_less_text_each_has(rows, said, area, headline, described):
    notes = Warned()
    shown = shorten_rows(notes, [list_alert(ALERT)] * rows, SHORT_PAGE)
    assert [message.startswith(said) for message in notes.said] == ([True] if said else [])
    assert len(shown) == rows
    for row in shown:
        assert len(row.areaDesc) <= area
        assert (row.headline is not None) is headline
        assert (row.ends is not None) is headline
        assert len(row.description or "") >= described
        assert (row.description is None) == (described == 0)


def test_a_page_holds_what_fits_and_at_least_one_alert():
    alert = ALERT._replace(description="Rain will fall on all. " * 400)
    assert count_fitting([alert] * 100, 19_000, is_short=True) == 100
    assert 1 < count_fitting([alert] * 100, 19_000, is_short=False) < 20
    assert count_fitting([alert] * 3, 10, is_short=False) == 1
    assert count_fitting([], 10, is_short=False) == 0


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
