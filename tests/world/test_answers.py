"""Every kind of fault, as a client meets it."""

import codecs
import json
import xml.etree.ElementTree as ET

import anyio
import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.world.toy import HOST, QUOTE, T, plain_get
from toolserver.world.answers import (
    ADDRESS,
    FORMS,
    LONG,
    LONG_ONES,
    TEXTS,
    barred_reply,
    challenge,
    damage,
    drift,
    empty,
    error,
    error_in_200,
    is_prose,
    is_time,
    jump,
    limited_reply,
    oversize,
    reason_of,
    spoil,
    unauthorized_reply,
    unresolved_reply,
    zeros,
)
from toolserver.world.model import Reply

CLOSE = plain_get(QUOTE, "Connection: close", "Accept-Encoding: identity")


async def test_latency_comes_before_the_first_byte(world):
    await world.fault("latency", ms=80, jitter_ms=40)
    started = anyio.current_time()  # of idle time
    assert (await world.get()).status_code == 200
    assert anyio.current_time() - started >= 0.079


async def test_a_slow_drip_takes_its_time_and_arrives_whole(world):
    await world.fault("slow_drip", bytes_per_s=2000)
    started = anyio.current_time()  # of idle time
    answer = await world.raw(CLOSE)
    body = answer.partition(b"\r\n\r\n")[2]
    assert json.loads(body)["symbol"] == "ABC"
    assert anyio.current_time() - started >= len(body) / 2000 - 0.01


async def test_a_timeout_never_answers_and_is_logged_without_a_status(world):
    await world.fault("timeout")
    with pytest.raises(TimeoutError) as nothing:
        await world.raw(CLOSE, wait_s=0.15)
    assert nothing.value.args == (b"",)
    with pytest.raises(httpx.ReadTimeout):
        await world.get(timeout=0.1)
    assert [r["status"] for r in await world.sim("GET", "/requests")] == [None, None]


async def test_a_reset_closes_before_the_headers(world):
    await world.fault("reset")
    with pytest.raises(anyio.BrokenResourceError):
        await world.raw(CLOSE)
    with pytest.raises((httpx.ReadError, httpx.RemoteProtocolError)):
        await world.get()


async def test_a_reset_inside_the_body_sends_half_of_it(world):
    whole = len((await world.raw(CLOSE)).partition(b"\r\n\r\n")[2])
    await world.fault("reset", at="body")
    with pytest.raises(anyio.BrokenResourceError) as reset:
        await world.raw(CLOSE)
    came = reset.value.args[0]
    assert f"Content-Length: {whole}".encode() in came
    assert len(came.partition(b"\r\n\r\n")[2]) == whole // 2


async def test_a_truncated_body_ends_before_the_length_it_announced(world):
    await world.fault("truncated", fraction=0.25)
    head, _, body = (await world.raw(CLOSE)).partition(b"\r\n\r\n")
    length = int(head.lower().partition(b"content-length: ")[2].split()[0])
    assert len(body) == length // 4
    with pytest.raises(httpx.RemoteProtocolError):
        await world.get()


async def test_a_status_has_the_upstreams_own_body_where_it_has_one(world):
    await world.fault("status", "Toy.quote", code=503, retry_after=120)
    own = await world.get()
    assert (own.status_code, own.json(), own.headers["retry-after"]) == (503, {"maintenance": True}, "120")
    await world.fault("status", "Toy.rows", code=500)
    other = await world.get(f"/u/{HOST}/rows.csv")
    assert (other.status_code, other.headers["content-type"]) == (500, "text/html; charset=utf-8")
    await world.fault("status", "Toy.feed", code=404)
    missing = await world.get("/u/feed.toy.example/rss")
    assert (missing.status_code, missing.json()) == (404, {"error": "Not Found", "status": 404})


async def test_a_rate_limit_refuses_as_the_upstream_does_until_the_window_moved_on(world):
    await world.fault("rate_limit", n=2, window_s=60)
    seen = [await world.get() for _ in range(3)]
    assert [r.status_code for r in seen] == [200, 200, 418]
    assert seen[2].json() == {"code": -1003}
    world.state.clock.advance(60)
    assert (await world.get()).status_code == 200
    await world.fault("rate_limit", "Toy.feed", n=0, window_s=30, id="f1")
    generic = await world.get("/u/feed.toy.example/rss")
    assert (generic.status_code, generic.headers["retry-after"]) == (429, "30")


async def test_a_malformed_body_is_complete_on_the_wire_and_no_json(world):
    await world.fault("malformed")
    answer = await world.get()
    assert answer.status_code == 200
    with pytest.raises(ValueError, match=r"Expecting|Unterminated|Extra data"):
        answer.json()
    feed = await world.get("/u/feed.toy.example/rss")
    with pytest.raises(ET.ParseError):
        ET.fromstring(feed.content)


async def test_html_with_200(world):
    await world.fault("html200")
    answer = await world.get()
    assert (answer.status_code, answer.headers["content-type"]) == (200, "text/html; charset=utf-8")
    assert answer.text.startswith("<!DOCTYPE html>")


async def test_an_error_inside_200_is_the_upstreams_own_or_a_generic_one(world):
    await world.fault("error200")
    assert (await world.get()).json() == {"status": "error", "reason": "unknown symbol"}
    other = await world.get("/u/feed.toy.example/rss")
    assert (other.status_code, list(other.json())) == (200, ["error"])


async def test_empty_zeros_and_jump_change_what_the_provider_said(world):
    whole = (await world.get()).json()
    await world.fault("empty", id="x")
    assert (await world.get()).json() == whole | {"items": []}
    assert (await world.get(f"/u/{HOST}/rows.csv")).text == "# made for tests\r\ndate,price,note\r\n"
    feed = ET.fromstring((await world.get("/u/feed.toy.example/rss")).content)
    assert (feed.find("channel/title").text, feed.find("channel/item")) == ("Café", None)
    await world.fault("zeros", id="x", keep_times=True)
    zeroed = (await world.get()).json()
    assert (zeroed["last"], zeroed["high"], zeroed["time"], zeroed["id"]) == (0, "0.00", whole["time"], 7)
    await world.fault("jump", id="x", factor=1.5)
    jumped = (await world.get()).json()
    assert (jumped["last"], jumped["high"], jumped["time"]) == (whole["last"] * 1.5, "227.25", whole["time"])
    assert '2027-01-15,15.00,"x, y"' in (await world.get(f"/u/{HOST}/rows.csv")).text


async def test_frozen_repeats_the_moment_it_was_set_with_a_fresh_date(world):
    whole = await world.get()
    await world.fault("frozen")
    await world.sim("PUT", "/values", {"key": "price.TOY", "value": 1})
    world.state.clock.advance(3600)
    later = await world.get()
    assert later.json() == whole.json()
    assert later.headers["date"] == "Fri, 15 Jan 2027 09:00:00 GMT"
    await world.sim("DELETE", "/faults")
    assert (await world.get()).json()["last"] == 1


async def test_old_answers_what_it_was(world):
    before = (await world.get()).json()
    world.state.clock.advance(7200)
    assert (await world.get()).json() != before
    await world.fault("old", seconds=7200)
    assert (await world.get()).json() == before


async def test_drift_takes_the_form_asked_for(world):
    whole = (await world.get()).json()
    await world.fault("drift", id="x")
    drifted = (await world.get()).json()
    assert drifted.pop("added_member") == "new"
    assert list(drifted) == list(reversed(whole))
    await world.fault("drift", id="x", form="strings")
    assert (await world.get()).json()["last"] == json.dumps(whole["last"])


async def test_an_oversize_body_is_that_large(world):
    await world.fault("oversize", mib=3)
    answer = await world.get()
    assert len(answer.content) == 3 * 1024 * 1024
    assert answer.json()["symbol"] == "ABC"


async def test_geo_auth_and_dns_refuse(world):
    await world.fault("geo", "Toy.quote", code=451)
    await world.fault("auth", "Toy.rows")
    await world.fault("dns", "feed.toy.example")
    assert (await world.get()).status_code == 451
    assert (await world.get(f"/u/{HOST}/rows.csv")).status_code == 401
    assert (await world.get("/u/feed.toy.example/rss")).status_code == 599


async def test_a_stuck_validator_says_304_for_ever(world):
    tag = (await world.get()).headers["etag"]
    await world.fault("conditional_stuck")
    world.state.clock.advance(86_400)
    for _ in range(2):
        assert (await world.get(headers={"If-None-Match": tag})).status_code == 304
    assert (await world.get()).status_code == 200


async def test_a_rule_for_one_path_leaves_the_rest_of_the_host_alone(world):
    await world.fault("html200", f"{HOST}/v1/")
    assert (await world.get()).headers["content-type"].startswith("text/html")
    assert (await world.get(f"/u/{HOST}/rows.csv")).headers["content-type"].startswith("text/csv")


async def test_a_recorded_body_is_served_in_place_of_the_provider_and_faults_still_apply(world, recordings):
    (recordings / "toy" / "quote.json").write_text('{"last": 5, "time": "2026-07-01T12:00:00Z"}')
    replay = await world.sim("PUT", "/replay/Toy.quote", {"file": "toy/quote.json", "shift_times": True})
    assert replay == {"source": "Toy.quote", "file": "toy/quote.json", "bytes": 43, "status": 200, "shift_times": True}
    assert (await world.get()).json() == {"last": 5, "time": "2027-01-15T07:59:00Z"}
    await world.fault("zeros")
    assert (await world.get()).json() == {"last": 0, "time": "2027-01-15T07:59:00Z"}
    await world.sim("DELETE", "/faults")
    await world.sim("PUT", "/replay/Toy.quote", {"file": "toy/quote.json"})
    assert (await world.get()).content == b'{"last": 5, "time": "2026-07-01T12:00:00Z"}'
    await world.sim("DELETE", "/replay/Toy.quote")
    assert (await world.get()).json()["time"] == int(T * 1000)


NOW = 1_800_000_000.0
REPLY = Reply.json({"status": 1, "at": NOW, "price": 10, "rows": [{"v": "2.5", "n": 3}, {"v": "x", "n": 4}]})


def value(reply: Reply) -> object:
    return json.loads(reply.body)


def test_zeros_leave_alone_what_says_what_the_answer_is():
    zeroed = value(zeros(REPLY, NOW))

    assert (zeroed["status"], zeroed["at"], zeroed["price"], zeroed["rows"][0]["n"]) == (1, 0, 0, 0)
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
    drifted = json.loads(body.decode("utf-16" if form == "utf16" else "utf-8-sig"))

    assert body != REPLY.body
    assert {name: drifted[name] for name in ("status", "at", "price")} == {"status": 1, "at": NOW, "price": 10}


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
    row = spoiled(ROW)
    assert row["title"] == f"{TEXTS[0]} {LONG}"
    assert row["note"] == f"{TEXTS[1]} {LONG}"
    assert {name: row[name] for name in ROW if name not in ("title", "note")} == {
        name: value for name, value in ROW.items() if name not in ("title", "note")
    }


def test_addresses_run_scripts_on_request():
    assert spoiled(ROW, links=True)["url"] == ADDRESS


def test_the_texts_come_in_turn_and_only_the_first_ones_are_long():
    titles = [row["title"] for row in spoiled([ROW] * 40)]
    assert {text.removesuffix(f" {LONG}") for text in titles} == set(TEXTS[::2])
    assert sum(LONG in text for text in titles) == LONG_ONES // 2


def test_the_texts_of_a_feed_are_escaped_as_a_publisher_would():
    body = "<rss><channel><item><title>One</title><link>https://a.example</link></item></channel></rss>"
    text = spoil(Reply.text(body, content_type="application/xml")).body.decode()
    assert "&lt;script&gt;" in text
    assert "<link>https://a.example</link>" in text


@given(
    st.recursive(
        st.none() | st.integers() | st.text(), lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner)
    )
)
def test_the_shape_of_a_body_stays(value):
    def shape(node):
        if isinstance(node, dict):
            return {name: shape(member) for name, member in node.items()}
        return [shape(member) for member in node] if isinstance(node, list) else type(node)

    assert shape(spoiled(value)) == shape(value)


def test_what_is_neither_json_nor_markup_stays():
    table = Reply.text("a,b\n1,2\n")
    assert spoil(table) is table
    assert not is_prose("", "title")


@pytest.mark.parametrize("code", [500, 502, 503, 504])
def test_a_gateway_answers_with_a_page(code):
    reply = error(code, retry_after_s=7)

    assert (reply.status, reply.headers) == (code, {"Retry-After": "7"})
    assert reply.content_type.startswith("text/html")
    assert f"{code} {reason_of(code)}" in reply.body.decode()


@pytest.mark.parametrize("code", [400, 404, 418])
def test_other_refusals_are_a_line_of_json(code):
    assert json.loads(error(code).body) == {"error": reason_of(code), "status": code}


@pytest.mark.parametrize("code", [204, 304])
def test_some_statuses_have_no_body(code):
    assert error(code).body == b""


def test_an_unknown_status_has_no_reason():
    assert reason_of(599) == ""


def test_pages_for_browsers_are_html_whatever_their_status():
    assert (challenge().status, barred_reply(451).status) == (200, 451)
    assert challenge().body.startswith(b"<!DOCTYPE html>")
    assert b"not available in your region" in barred_reply(451).body


def test_errors_that_hide_in_a_good_status_are_json():
    assert error_in_200().status == 200
    assert json.loads(error_in_200().body)["error"]["code"] == 400


def test_refusals_name_their_status():
    assert unauthorized_reply().status == 401
    assert (limited_reply(30).status, limited_reply(30).headers) == (429, {"Retry-After": "30"})
    assert unresolved_reply().status == 599
