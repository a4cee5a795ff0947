"""Requests as ASGI gives them: headers read once, bodies with a bound, and what a query or a body may say."""

from dataclasses import replace

import pytest

from rest_bridge.asgi import (
    MOST_PARAMETERS,
    ParsedRequest,
    body_of,
    from_body,
    from_query,
    parse_request,
    send,
    take_short_meta,
)
from toolserver.errors import InvalidArguments, InvalidJson, PayloadTooLarge, UnsupportedMediaType


def parse(*headers):
    return parse_request({"headers": list(headers)})


async def body(*chunks, limit=10, length=None):
    messages = [
        {"type": "http.request", "body": chunk, "more_body": index < len(chunks) - 1}
        for index, chunk in enumerate(chunks)
    ]
    read = iter(messages)

    async def receive():
        return next(read)

    return await body_of(receive, ParsedRequest(content_length=length), limit), list(read)


def test_each_header_lands_in_its_field():
    found = parse((b"accept", b"a"), (b"if-none-match", b"b"), (b"x-unknown", b"c"), (b"authorization", b"d"))
    assert (found.accept, found.if_none_match, found.authorization, found.twice) == (b"a", b"b", b"d", None)


def test_lists_that_are_sent_in_parts_are_joined():
    found = parse(
        (b"if-none-match", b'"a"'), (b"if-none-match", b'"b"'), (b"x-forwarded-for", b"1"), (b"x-forwarded-for", b"2")
    )
    assert (found.if_none_match, found.forwarded, found.twice) == (b'"a", "b"', b"1, 2", None)


@pytest.mark.parametrize("name", [b"authorization", b"idempotency-key", b"payment-signature", b"content-type"])
def test_a_header_that_must_be_single_is_noticed_when_it_is_not(name):
    assert parse((name, b"1"), (name, b"2")).twice == name


async def test_a_body_is_joined_from_its_parts():
    assert await body(b"ab", b"", b"cd") == (b"abcd", [])
    assert (await body(b"x" * 10))[0] == b"x" * 10


async def test_a_body_that_grows_beyond_the_bound_is_not_read_to_its_end():
    with pytest.raises(PayloadTooLarge) as refused:
        await body(b"x" * 6, b"x" * 5, b"x" * 1000)
    assert refused.value.extra["limit_bytes"] == 10


@pytest.mark.parametrize("length", [b"11", b"9" * 5000])
async def test_a_body_announced_beyond_the_bound_is_not_read_at_all(length):
    with pytest.raises(PayloadTooLarge):
        await body(length=length)


@pytest.mark.parametrize(("head", "sent"), [(False, b"x"), (True, b"")])
async def test_only_the_headers_go_to_a_head_request(head, sent):
    messages = []

    async def take(message):
        messages.append(message)

    await send(take, 200, [(b"a", b"b")], b"x", head=head)
    assert [message.get("body") for message in messages] == [None, sent]


FIELDS = {
    b"accept": "accept",
    b"accept-encoding": "accept_encoding",
    b"if-none-match": "if_none_match",
    b"x-request-id": "request_id",
    b"authorization": "authorization",
    b"x-forwarded-for": "forwarded",
    b"user-agent": "agent",
    b"content-type": "content_type",
    b"content-length": "content_length",
    b"idempotency-key": "idempotency_key",
    b"x-agent-nonce": "nonce",
    b"payment-signature": "payment",
    b"x-payment": "payment",
    b"origin": "origin",
    b"prefer": "prefer",
}


@pytest.mark.parametrize("name", FIELDS)
def test_each_header_fills_its_own_field_and_no_other(name):
    assert parse((name, b"x")) == replace(ParsedRequest(), **{FIELDS[name]: b"x"})


def test_exactly_those_headers_must_be_single_that_act_or_say_who_acts():
    repeated = {name for name in FIELDS if parse((name, b"1"), (name, b"2")).twice is not None}
    assert repeated == {
        *(b"authorization", b"content-type", b"idempotency-key", b"content-length"),
        *(b"payment-signature", b"x-payment"),
    }


def test_payments_of_two_versions_are_two_payments_and_an_empty_header_is_none():
    assert parse((b"payment-signature", b"1"), (b"x-payment", b"2")).twice == b"x-payment"
    assert parse((b"x-payment", b""), (b"payment-signature", b"2")).twice is None


@pytest.mark.parametrize("length", [None, b"10", b"4", b"", b"-11", b"abc"])
async def test_a_body_within_the_bound_is_read_whatever_was_announced(length):
    assert await body(b"x" * 10, length=length) == (b"x" * 10, [])


async def test_a_body_that_breaks_off_is_never_taken_for_a_whole_one():
    messages = iter([{"type": "http.request", "body": b"{}", "more_body": True}, {"type": "http.disconnect"}])

    async def receive():
        return next(messages)

    with pytest.raises(InvalidJson):
        await body_of(receive, ParsedRequest(), 10)


async def test_a_message_without_a_body_ends_an_empty_one():
    async def receive():
        return {"type": "http.request"}

    assert await body_of(receive, ParsedRequest(), 10) == b""


async def test_a_response_is_its_start_and_its_whole_body():
    messages = []

    async def take(message):
        messages.append(message)

    await send(take, 201, [(b"a", b"b")], b"x")
    assert messages == [
        {"type": "http.response.start", "status": 201, "headers": [(b"a", b"b")]},
        {"type": "http.response.body", "body": b"x"},
    ]


def test_a_query_becomes_text_by_name_and_an_empty_value_stays():
    assert from_query(b"symbol=BTC&note=&q=a%20b%2Cc") == {"symbol": "BTC", "note": "", "q": "a b,c"}
    assert from_query(b"") == {}


def test_a_parameter_given_twice_is_refused_by_name():
    with pytest.raises(InvalidArguments) as refused:
        from_query(b"symbol=BTC&range=1d&symbol=ETH")

    assert [error["loc"] for error in refused.value.extra["errors"]] == ["symbol"]


@pytest.mark.parametrize("query", [b"q=%ff", b"q=\xff", b"&".join(b"p%d=1" % n for n in range(MOST_PARAMETERS + 1))])
def test_a_query_that_is_not_utf_8_or_far_too_long_is_refused(query):
    with pytest.raises(InvalidArguments):
        from_query(query)


@pytest.mark.parametrize("kind", [None, b"application/json", b"Application/JSON; charset=utf-8", b"application/x+json"])
def test_a_json_object_is_read_under_any_json_type(kind):
    assert from_body(b'{"a": [1]}', kind) == {"a": [1]}


def test_an_empty_body_is_an_empty_object_whatever_its_type():
    assert from_body(b" \n", b"text/plain") == {}


def test_another_media_type_is_refused():
    with pytest.raises(UnsupportedMediaType):
        from_body(b"a=1", b"application/x-www-form-urlencoded")


@pytest.mark.parametrize("body", [b"{", b"[1]", b'"text"', b"null", b"\xff", b"[" * 100_000])
def test_what_is_no_json_object_is_refused(body):
    with pytest.raises(InvalidJson):
        from_body(body, b"application/json")


def test_as_many_as_fifty_parameters_are_taken():
    given = {f"p{n}": "1" for n in range(50)}
    assert from_query("&".join(f"{name}=1" for name in given).encode()) == given
    assert MOST_PARAMETERS == 50


def test_all_repeated_parameters_are_named_once_in_the_order_of_the_alphabet():
    with pytest.raises(InvalidArguments) as refused:
        from_query(b"b=1&a=1&b=2&a=2&a=3&c=1")

    assert refused.value.extra["errors"] == [
        {"loc": name, "msg": "given more than once", "type": "repeated"} for name in ("a", "b")
    ]


@pytest.mark.parametrize(("query", "is_short"), [({}, False), ({"meta": "full"}, False), ({"meta": "short"}, True)])
def test_how_much_meta_is_wanted_is_taken_out_of_the_parameters(query, is_short):
    given = {"symbol": "BTC"} | query
    assert take_short_meta(given) is is_short
    assert given == {"symbol": "BTC"}


@pytest.mark.parametrize("word", ["", "Short", "long"])
def test_another_word_for_the_meta_is_refused(word):
    with pytest.raises(InvalidArguments) as refused:
        take_short_meta({"meta": word})

    assert refused.value.extra["errors"] == [{"loc": "meta", "msg": "must be short or full", "type": "literal_error"}]


@pytest.mark.parametrize("kind", [b"text/json", b"application/jsonx", b"text/plain; application/json", b"json"])
def test_what_only_looks_like_json_is_another_media_type(kind):
    with pytest.raises(UnsupportedMediaType):
        from_body(b"{}", kind)
