"""What the project's tools show: every headline and picture is there in an answer of the simulated world."""

import json

import pytest

from toolserver.registry.display import fill_places, read_path
from toolserver.registry.field_table import payload_rows
from toolserver.registry.registry import Registry, Tier
from toolserver.serving.packaged_texts import read_examples, read_samples

REGISTRY = Registry.load("tools")
EXAMPLES = read_examples()
SHOWN = [operation for operation in REGISTRY if operation.headline or operation.pictures]


def read_paths(body, path):
    """What a path leads to: with a `*` in it, something for each member of an object."""
    before, star, after = path.partition("*")
    if not star:
        return [read_path(body, path)]
    return [read_path(member, after.removeprefix(".")) for member in read_path(body, before.removesuffix(".")).values()]


def payload(operation):
    body = EXAMPLES[operation.name]
    return body["data"] if operation.enveloped else body


@pytest.mark.parametrize("operation", [o for o in SHOWN if o.headline], ids=lambda o: o.name)
def test_a_headline_is_in_the_answer(operation):
    missing = [path for path in operation.headline.paths if read_path(payload(operation), path) is None]
    assert missing == []
    assert operation.tier is Tier.FREE, "a card shows what everybody may read"


@pytest.mark.parametrize(
    ("operation", "quote"),
    [(o, q) for o in SHOWN if o.headline for q in o.headline.quotes],
    ids=lambda one: one.label if hasattr(one, "label") else one.name,
)
def test_a_figure_of_the_strip_of_markets_is_in_the_answer_which_is_shortened_to_two_rows(operation, quote):
    assert isinstance(read_path(payload(operation), quote.value.replace(".2.", ".1.")), int | float)
    label = fill_places(quote.label.replace(".2.", ".1."), payload(operation))
    assert label
    assert None not in label
    if quote.change:
        assert isinstance(read_path(payload(operation), quote.change.replace(".2.", ".1.")), int | float)


@pytest.mark.parametrize("operation", [o for o in SHOWN if o.pictures], ids=lambda o: o.name)
def test_the_rows_of_a_picture_have_the_members_that_it_draws(operation):
    for picture in operation.pictures:
        if picture.arguments:
            described = {row.path for row in payload_rows(operation)}
            assert any(path.split(".")[0].split("[")[0] in picture.rows for path in described)
            assert all(name in operation.input_schema["properties"] for name in picture.arguments)
            continue
        for rows in read_paths(payload(operation), picture.rows):
            assert rows or rows == [], picture.title
            if isinstance(rows, dict | str):
                assert picture.kind in ("bars", "matrix", "board", "text"), "the others draw a list"
            if picture.kind == "text":
                rows = [payload(operation)]
            elif picture.kind == "board":
                rows = [row for row in rows.values() if isinstance(row, dict)]
            elif isinstance(rows, dict):
                continue
            drawn = {*picture.values, picture.label, picture.time, *_place(picture), *picture.ends} - {""}
            for row in rows[:1]:
                missing = {paths for paths in drawn if not any(_has(row, path) for path in paths.split("|"))}
                assert missing == set(), picture.title


def _has(row, path):
    """Whether a row has the member at a path, be it null."""
    above, _, name = path.rpartition(".")
    return name in (read_path(row, above) or {})


@pytest.mark.parametrize("operation", [o for o in REGISTRY if o.credits], ids=lambda o: o.name)
def test_a_premium_tool_is_shown_by_one_whole_sample_with_something_to_draw(operation):
    sample = json.loads(read_samples()[operation.name])
    assert sample.keys() >= set(EXAMPLES[operation.name]) - {"warning"}
    assert sample["stale"] is False
    drawn = [rows for picture in operation.pictures for rows in read_paths(sample, picture.rows) if rows]
    assert drawn, "nothing of the sample is drawn"


def _place(picture):
    return (picture.lat, picture.lon) if picture.kind == "map" else ()
