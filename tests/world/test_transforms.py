"""What a fault does to a body, form by form."""

import codecs
import json

import pytest

from toolserver.world.model import Reply
from toolserver.world.transforms import FORMS, damage, drift, empty, is_time, jump, oversize, zeros

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
