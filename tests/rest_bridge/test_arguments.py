"""What a query string or a body may say before anything is checked against a tool's schema."""

import pytest

from rest_bridge.arguments import MOST_PARAMETERS, from_body, from_query, take_short_meta
from toolserver.errors import InvalidArguments, InvalidJson, UnsupportedMediaType


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
