"""The fault `hostile`: every text becomes hostile, and what is no text stays, so that readers still take the body."""

import json

from hypothesis import given
from hypothesis import strategies as st

from toolserver.world.model import Reply
from toolserver.world.transforms import ADDRESS, LONG, LONG_ONES, TEXTS, is_prose, spoil

ROW = {
    "id": "us7000abcd",
    "title": "M 5.1 - 10 km S of Somewhere",
    "time": "2027-01-15T08:00:00Z",
    "url": "https://one.example/a",
    "status": "reviewed",
    "code": 7,
    "note": "three plain words",
}


def spoiled(value, **more):
    return json.loads(spoil(Reply.json(value), **more).body)


def test_texts_are_replaced_and_ids_times_addresses_and_words_of_a_fixed_list_stay():
    found = spoiled(ROW)
    assert found["title"] == f"{TEXTS[0]} {LONG}"
    assert found["note"] == f"{TEXTS[1]} {LONG}"
    assert {name: found[name] for name in ROW if name not in ("title", "note")} == {
        name: value for name, value in ROW.items() if name not in ("title", "note")
    }


def test_addresses_run_scripts_on_request():
    assert spoiled(ROW, links=True)["url"] == ADDRESS


def test_the_texts_come_in_turn_and_only_the_first_ones_are_long():
    found = [row["title"] for row in spoiled([ROW] * 40)]
    assert {text.removesuffix(f" {LONG}") for text in found} == set(TEXTS[::2])
    assert sum(LONG in text for text in found) == LONG_ONES // 2


def test_the_texts_of_a_feed_are_escaped_as_a_publisher_would():
    body = "<rss><channel><item><title>One</title><link>https://a.example</link></item></channel></rss>"
    found = spoil(Reply.text(body, content_type="application/xml")).body.decode()
    assert "&lt;script&gt;" in found
    assert "<link>https://a.example</link>" in found


@given(
    st.recursive(
        st.none() | st.integers() | st.text(), lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner)
    )
)
def test_the_shape_of_a_body_stays(value):
    def shape(found):
        if isinstance(found, dict):
            return {name: shape(member) for name, member in found.items()}
        return [shape(member) for member in found] if isinstance(found, list) else type(found)

    assert shape(spoiled(value)) == shape(value)


def test_what_is_neither_json_nor_markup_stays():
    table = Reply.text("a,b\n1,2\n")
    assert spoil(table) is table
    assert not is_prose("", "title")
