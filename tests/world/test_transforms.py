"""What a fault does to a body, form by form."""

import codecs
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolserver.world.model import Reply
from toolserver.world.transforms import (
    ADDRESS,
    FORMS,
    LONG,
    LONG_ONES,
    TEXTS,
    damage,
    drift,
    empty,
    is_prose,
    is_time,
    jump,
    oversize,
    spoil,
    zeros,
)

NOW = 1_800_000_000.0
REPLY = Reply.json({"status": 1, "at": NOW, "price": 10, "rows": [{"v": "2.5", "n": 3}, {"v": "x", "n": 4}]})


def value(reply: Reply) -> object:
    return json.loads(reply.body)


def test_zeros_leave_alone_what_says_what_the_answer_is():
    found = value(zeros(REPLY, NOW))

    assert (found["status"], found["at"], found["price"], found["rows"][0]["n"]) == (1, 0, 0, 0)
    assert value(zeros(REPLY, NOW, keep_times=True))["at"] == NOW


def test_a_jump_moves_values_and_no_times():
    jumped = value(jump(REPLY, NOW, 3))

    assert (jumped["price"], jumped["at"], jumped["status"]) == (30, NOW, 1)


@pytest.mark.parametrize("scale", [1, 1e3, 1e6, 1e9])
def test_an_instant_is_known_in_every_unit(scale):
    assert is_time(NOW * scale, NOW)
    assert not is_time(NOW * scale * 1.5, NOW)


def test_damage_is_no_json_at_any_cut():
    for fraction in (0, 0.3, 0.99, 1):
        with pytest.raises(json.JSONDecodeError):
            json.loads(damage(REPLY, fraction).body)


def test_an_oversized_body_says_the_same_in_more_bytes():
    large = oversize(REPLY, 0.5)

    assert len(large.body) == 512 * 1024
    assert value(large) == value(REPLY)
    assert oversize(REPLY, 0).body == REPLY.body


def test_an_empty_body_keeps_its_form():
    assert value(empty(Reply.json([1, 2]))) == []


@pytest.mark.parametrize("form", ["extra", "utf16", "bom"])
def test_drift_that_changes_no_fact(form):
    body = drift(REPLY, form).body
    found = json.loads(body.decode("utf-16" if form == "utf16" else "utf-8-sig"))

    assert body != REPLY.body
    assert {name: found[name] for name in ("status", "at", "price")} == {"status": 1, "at": NOW, "price": 10}


def test_drift_between_numbers_and_strings():
    assert value(drift(REPLY, "strings"))["price"] == "10"
    assert value(drift(REPLY, "numbers"))["rows"][0]["v"] == 2.5
    assert value(drift(REPLY, "numbers"))["rows"][1]["v"] == "x"


def test_renamed_members_are_all_renamed():
    assert set(value(drift(REPLY, "renamed"))) == {"status_v2", "at_v2", "price_v2", "rows_v2"}


def test_a_mark_of_byte_order_is_written_once():
    twice = drift(drift(REPLY, "bom"), "bom").body

    assert twice.count(codecs.BOM_UTF8) == 1


def test_an_unnamed_or_unknown_form_is_the_common_one():
    assert drift(REPLY, None) == drift(REPLY, "extra") == drift(REPLY, "no such form")
    assert "extra" in FORMS


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
