"""Which alerts are in force, how grave they are, and the severe_weather tool."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

import tools.simulated.noaa
import tools.simulated.nws  # noqa: F401 - registers its routes
from tests.tools.desk import NOW
from tools.free.severe_weather import severe_weather
from tools.shared.alerts import CERTAINTIES, SEVERITIES, URGENCIES, category, in_force, ranked, ranked_map, score
from tools.sources.noaa import AlertMap, MappedAlert
from tools.sources.nws import Alert, AlertList
from toolserver.context.context import ToolContext
from toolserver.upstream.source import SourceAnswer, SourceDown, SourceEmpty, SourceError
from toolserver.world.model import ROUTES, Edits, World

NWS, MAP = "NWS.alerts_active", "NOAA.watch_warning_map"
TIME = datetime.fromtimestamp(NOW, UTC)


def alert(name, **changed):
    usual = Alert(
        id=name,
        event="Wind Advisory",
        severity="Moderate",
        urgency="Expected",
        certainty="Likely",
        area="Northern Oklahoma",
        sent=TIME - timedelta(hours=1),
        effective=TIME - timedelta(hours=1),
        expires=TIME + timedelta(hours=1),
        ends=None,
        message_type="Alert",
        headline=None,
        description=None,
        sender=None,
        web=None,
        url=None,
    )
    return usual._replace(**changed)


def names(found):
    return [a.id for a in found]


# What is in force


def test_what_has_ended_is_over_and_without_an_end_what_has_expired():
    over, later = TIME - timedelta(seconds=1), TIME + timedelta(hours=9)
    listed = [
        alert("ended", ends=over, expires=later),
        alert("expired", expires=over),
        alert("goes on", ends=later, expires=over),
        alert("now", expires=TIME),
        alert("usual"),
    ]
    assert names(in_force(listed, TIME)) == ["goes on", "usual"]


def test_a_cancel_is_no_alert_and_takes_what_it_names_with_it():
    cancel = alert("cancel", message_type="Cancel", references=frozenset({"first"}))
    assert names(in_force([alert("first"), cancel, alert("other")], TIME)) == ["other"]


def test_an_update_replaces_what_it_refers_to_while_it_is_in_force_itself():
    update = alert("update", message_type="Update", references=frozenset({"first"}))
    assert names(in_force([alert("first"), update], TIME)) == ["update"]
    void = update._replace(expires=TIME - timedelta(minutes=1))
    assert names(in_force([alert("first"), void], TIME)) == ["first"]


def test_a_message_listed_twice_counts_once_and_does_not_replace_itself():
    twice = alert("same", references=frozenset({"same"}))
    assert names(in_force([twice, twice], TIME)) == ["same"]


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(-3, 3), st.frozensets(st.integers(0, 9))), max_size=10))
def test_everything_in_force_was_listed_and_is_not_over(rows):
    listed = [
        alert(f"{name}", expires=TIME + timedelta(hours=hours), references=frozenset(f"{r}" for r in gone))
        for name, hours, gone in rows
    ]
    found = in_force(listed, TIME)
    assert all(a in listed and a.expires > TIME for a in found)
    assert len(names(found)) == len(set(names(found)))


# How grave it is


def test_the_score_is_a_product_of_64_at_most():
    assert score("Extreme", "Immediate", "Observed") == 64
    assert score("Severe", "Expected", "Likely") == 27
    assert score("Minor", "Past", "Unlikely") == 0.5
    assert score("Unknown", "Unknown", "Unknown") == 0.125
    assert max(SEVERITIES.values()) * max(URGENCIES.values()) * max(CERTAINTIES.values()) == 64


def test_higher_scores_come_first_and_among_equals_the_newer():
    listed = (
        alert("old"),
        alert("grave", severity="Extreme"),
        alert("new", sent=TIME),
    )
    assert names(ranked(AlertList(listed, TIME), TIME).alerts) == ["grave", "new", "old"]


@pytest.mark.parametrize(
    ("event", "word"),
    [
        ("Tornado Warning", "tornado"),
        ("Hurricane Watch", "tropical"),
        ("Tropical Storm Warning", "tropical"),
        ("Storm Surge Warning", "tropical"),
        ("Coastal Flood Advisory", "flood"),
        ("Severe Thunderstorm Watch", "thunderstorm"),
        ("Winter Storm Warning", "winter"),
        ("Snow Squall Warning", "winter"),
        ("Ice Storm Warning", "winter"),
        ("Freeze Watch", "winter"),
        ("Red Flag Warning", "fire"),
        ("Fire Weather Watch", "fire"),
        ("Excessive Heat Warning", "heat"),
        ("High Wind Warning", "wind"),
        ("Gale Warning", "marine"),
        ("High Surf Advisory", "marine"),
        ("Special Marine Warning", "marine"),
        ("Air Quality Alert", "other"),
        ("Police Notice", "other"),
        ("Flash Flood Warning", "flood"),
    ],
)
def test_the_category_is_told_by_the_events_words(event, word):
    assert category(event) == word


def test_the_map_is_ranked_by_significance_and_drops_what_is_over_or_called_off():
    def mapped(name, significance, **changed):
        usual = MappedAlert(
            name, "Wind Advisory", significance, "KOUN", TIME, TIME + timedelta(hours=1), None, "NEW", None
        )
        return usual._replace(**changed)

    rows = (
        mapped("none", None),
        mapped("statement", "S"),
        mapped("advisory", "Y"),
        mapped("watch", "A"),
        mapped("warning", "W", issued=TIME - timedelta(hours=1)),
        mapped("newer", "W"),
        mapped("over", "W", ends=TIME),
        mapped("off", "W", action="CAN"),
        mapped("upgraded", "W", action="UPG"),
    )
    ranking = ranked_map(AlertMap(rows, True), TIME)
    assert names(ranking.alerts) == ["newer", "warning", "watch", "advisory", "statement", "none"]
    assert {(a.severity, a.urgency, a.certainty, a.score) for a in ranking.alerts} == {
        ("Unknown", "Unknown", "Unknown", 0.125)
    }
    assert (ranking.classed, ranking.truncated) == (False, True)


# The tool


@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize("later_s", [0, 59, 7_213])
async def test_the_ranking_equals_the_world(compose, seed, later_s):
    world = World(seed, NOW + later_s)
    made = await compose(severe_weather, world=world)

    expected = ROUTES.expectations["severe-weather"](world, {})
    assert made.json["total_active"] == expected["total_active"] >= 15
    assert made.json["counts_by_severity"] == expected["counts_by_severity"]
    assert [{k: row[k] for k in ("id", "event", "score")} for row in made.json["top"]] == expected["top"]
    assert made.json["top"][0]["event"] == "Tornado Warning"
    assert made.json["top"][0]["category"] == "tornado"
    assert sum(made.json["counts_by_severity"].values()) == made.json["total_active"]
    assert made.notes.warnings == []


async def test_when_the_nws_is_down_the_map_answers_and_claims_no_classes(compose):
    made = await compose(severe_weather, down={NWS})

    counts = made.json["counts_by_severity"]
    assert counts == {"Extreme": 0, "Severe": 0, "Moderate": 0, "Minor": 0, "Unknown": made.json["total_active"]}
    assert {row["score"] for row in made.json["top"]} == {0.125}
    assert all(row["event"].endswith("Warning") for row in made.json["top"])
    assert [w.code for w in made.notes.warnings] == ["fallback_used", "degraded_fallback"]


async def test_an_empty_list_is_a_fault_and_the_map_is_asked(compose):
    made = await compose(severe_weather, forms={NWS: "empty"})
    assert made.json["total_active"] > 15
    assert {n.source.name: n.status for n in made.notes.sources} == {MAP: "fallback", NWS: "error"}


@pytest.mark.parametrize("faults", [{"down": {"*"}}, {"forms": {NWS: "empty", MAP: "error200"}}])
async def test_when_nobody_answers_nothing_is_called_calm(compose, faults):
    with pytest.raises(SourceError):
        await compose(severe_weather, **faults)


async def test_an_injected_alert_leads(compose):
    event = {"kind": "alert", "at": NOW - 90, "event": "Extreme Wind Warning", "severity": "Extreme"}
    made = await compose(severe_weather, world=World(1, NOW, Edits(events=[event])))
    assert made.json["top"][0]["event"] == "Extreme Wind Warning"


class KeptDesk:
    """A list of the NWS that is at hand, and nothing else."""

    def __init__(self, listed):
        self.listed = listed

    async def fresh(self, source, query, *, sla_s):
        raise SourceDown("arranged")

    async def kept(self, source, query):
        return SourceAnswer(self.listed, TIME, None, None) if source.name == NWS else None


async def test_a_stale_list_loses_what_ended_since_and_is_no_answer_once_all_of_it_has():
    desk = KeptDesk(AlertList((alert("a"), alert("b", expires=TIME + timedelta(hours=5))), TIME))
    ctx = ToolContext(desk, now=lambda: TIME + timedelta(hours=3), sla_s=60)
    made = await severe_weather(ctx)
    assert (made.total_active, [a.id for a in made.top]) == (1, ["b"])
    assert [w.code for w in ctx.notes.warnings] == ["stale_data"]

    ctx = ToolContext(desk, now=lambda: TIME + timedelta(hours=6), sla_s=60)
    with pytest.raises(SourceEmpty):
        await severe_weather(ctx)
    assert [w.code for w in ctx.notes.warnings] == ["stale_data", "section_unavailable"]
