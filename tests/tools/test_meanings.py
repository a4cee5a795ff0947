"""Who defines what an answer's words say: every classified row, on each side of every boundary."""

from datetime import date

import pytest

from catalog.tool_pages import meanings_page
from tests.served import all_tools
from tests.tools.desk import NOW, compose
from tools.free.air_quality import air_quality
from tools.free.space_weather import space_weather
from tools.free.weather import weather
from tools.premium.crypto_deep import premium_crypto_deep
from toolserver.registry.meaning import Definition, Meaning, find_meanings
from toolserver.registry.response_schema import answer_schema
from toolserver.world.model import Edits, World

MEANINGS = find_meanings(["tools"])


def test_every_row_is_classified_as_written():
    rows = [(m.field, row, m.decide(row), right) for m in MEANINGS if m.decide for row, right in m.rows]
    assert len(rows) > 50
    assert [row for row in rows if row[2] != row[3] or type(row[2]) is not type(row[3])] == []


def test_a_rule_of_a_publisher_names_it_and_quotes_it_with_a_link_and_the_day_it_was_read_or_not_at_all():
    for field, by in [(m.field, m.definition) for m in MEANINGS if m.definition is not None]:
        if by.words:
            assert by.link.startswith("https://"), field
            assert isinstance(by.read_on, date), field
            assert len(by.words) <= 160, field
        else:
            assert by.publisher, field
            assert by.read_on is None, field
    assert all(bool(m.decide) == bool(m.rows) for m in MEANINGS)


def test_the_docs_say_whether_a_publisher_is_quoted_only_known_or_whether_the_choice_is_ours():
    quoted = Meaning(
        "a.b",
        "x",
        definition=Definition(publisher="NOAA", link="https://noaa.example", words="y", read_on=date(2026, 11, 25)),
    )
    page = meanings_page([quoted, Meaning("a.c", "x", definition=Definition(publisher="EPA")), Meaning("a.d", "x")])
    assert [line.split(" | ")[2] for line in page.splitlines() if line.startswith("| `a.")] == [
        '[NOAA](https://noaa.example), read 2026-11-25: "y"',
        "EPA, without a quotation",
        "our choice",
    ]


def members(node):
    """Every name of a member that a schema describes."""
    if isinstance(node, dict):
        yield from node.get("properties", {})
    for child in node.values() if isinstance(node, dict) else node if isinstance(node, list) else ():
        yield from members(child)


def value_at(answer, path):
    for name in path.split("."):
        answer = answer[name]
    return answer


@pytest.mark.parametrize(
    ("tool", "pin", "path", "field"),
    [
        (space_weather, "kp.index", "storm_level", "space-weather.storm_level"),
        (space_weather, "xray.flux", "flare_peak_class_24h", "space-weather.flare_peak_class_24h"),
        (air_quality, "air.us_aqi", "us_aqi_band", "air-quality.us_aqi_band"),
        (weather, "weather.code", "current.condition", "weather.condition"),
        (
            premium_crypto_deep,
            "btc.fee_sat_vb",
            "network_btc.fees_sat_per_vb.fastest",
            "pro/crypto-deep.network_btc.fees_sat_per_vb",
        ),
    ],
)
async def test_a_world_on_each_side_of_a_boundary_is_answered_with_the_word_of_the_table(tool, pin, path, field):
    rows = next(meaning.rows for meaning in MEANINGS if meaning.field == field and meaning.rows)
    said = []
    for value, word in rows:
        if value is not None:
            made = await compose(tool, world=World(1, NOW, Edits(pins={pin: [(0, 2 * NOW, value)]})))
            said.append((value, value_at(made.json, path), word))
    assert len(said) >= 5
    assert [row for row in said if row[1] != row[2]] == []


def test_every_field_is_a_member_of_an_answer():
    described = {tool.path.removeprefix("/api/"): set(members(answer_schema(tool))) for tool in all_tools()}
    unknown = []
    for meaning in MEANINGS:
        endpoint, _, path = meaning.field.partition(".")
        unknown += [meaning.field for name in path.split(".") if name not in described.get(endpoint, set())]
    assert unknown == []
